//! One visitor encodes, hashes and checks: what crosses between nodes is plain data.
//!
//! A `record!` declares a struct together with its encoding: little-endian, fields in order, lengths
//! first. Its schema (names and types) is text that both sides of a connection compare.

use blake3::hazmat::HasherExt;
use std::borrow::Cow;
use thiserror::Error;

/// Where values go: bytes, a digest, or the door that looks for bad numbers.
pub trait Sink {
    /// Raw bytes: lengths, indices, words.
    fn bytes(&mut self, bytes: &[u8]);
    /// Numbers that mean something.
    fn numbers(&mut self, numbers: &[f64]);
    /// Numbers that mean something and are all of single precision.
    fn narrow_numbers(&mut self, numbers: &[f64]) {
        for number in numbers {
            self.bytes(&(*number as f32).to_le_bytes());
        }
    }
    /// How many values of a list follow.
    fn length(&mut self, count: usize) {
        self.bytes(&(count as u64).to_le_bytes());
    }
}

/// Data that can cross between nodes and be kept on disk.
pub trait Codec: Sized {
    /// Names and types, compared before anything is decoded.
    fn schema() -> String;
    /// Visits every value in order.
    fn put<S: Sink>(&self, sink: &mut S);
    /// Reads back what `put` wrote.
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged>;

    /// Visits every value of a list, its length aside.
    fn put_all<S: Sink>(items: &[Self], sink: &mut S) {
        for item in items {
            item.put(sink);
        }
    }
    /// Reads so many values.
    fn get_all(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Damaged> {
        // Grown step by step: the count is not to be believed before the items are there.
        let mut items = Vec::with_capacity(count.min(reader.left() + 1));
        for _ in 0..count {
            items.push(Self::get(reader)?);
            if items.len() > (1 << 32) {
                return Err(Damaged);
            }
        }
        Ok(items)
    }

    /// The bytes of this value.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Encoder::default();
        self.put(&mut bytes);
        bytes.0
    }

    /// The value of these bytes; all of them must be used.
    fn from_bytes(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let value = Self::get(&mut reader)?;
        if reader.left() == 0 { Ok(value) } else { Err(Damaged) }
    }
}

/// Bytes that are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("damaged or truncated data")]
pub struct Damaged;

/// Collects the bytes of values.
#[derive(Debug, Default)]
pub struct Encoder(pub Vec<u8>);

impl Sink for Encoder {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    fn numbers(&mut self, numbers: &[f64]) {
        let start = self.0.len();
        self.0.resize(start + numbers.len() * 8, 0);
        for (slot, number) in self.0[start..].as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *slot = number.to_le_bytes();
        }
    }
    fn narrow_numbers(&mut self, numbers: &[f64]) {
        let start = self.0.len();
        self.0.resize(start + numbers.len() * 4, 0);
        for (slot, number) in self.0[start..].as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
            *slot = (*number as f32).to_le_bytes();
        }
    }
}

/// A digest over values. Short ones are gathered and hashed in one go, as most messages are short.
#[derive(Debug)]
pub struct Digest {
    mode: Mode,
    gathered: [u8; SHORT],
    length: usize,
    /// Everything before what is gathered, once there is more than fits.
    long: Option<Box<blake3::Hasher>>,
}

/// One chunk of BLAKE3.
const SHORT: usize = 1024;

/// The three ways BLAKE3 begins.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Plain,
    Keyed([u8; 32]),
    Derived(Context),
}

/// The hash of a context, made once: it costs as much as hashing a short message.
pub type Context = [u8; 32];

/// What [`Digest::derived`] begins with.
pub fn context(words: &str) -> Context {
    blake3::hazmat::hash_derive_key_context(words)
}

impl Mode {
    fn hasher(&self) -> blake3::Hasher {
        match self {
            Mode::Plain => blake3::Hasher::new(),
            Mode::Keyed(key) => blake3::Hasher::new_keyed(key),
            Mode::Derived(context) => blake3::Hasher::new_from_context_key(context),
        }
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self { mode: Mode::Plain, gathered: [0; SHORT], length: 0, long: None }
    }
}

impl Digest {
    /// The digest of one value.
    pub fn of<T: Codec>(value: &T) -> [u8; 32] {
        let mut digest = Self::default();
        value.put(&mut digest);
        digest.finish()
    }

    /// A digest that only the holder of a key can make.
    pub fn keyed(key: &[u8; 32]) -> Self {
        Self { mode: Mode::Keyed(*key), ..Self::default() }
    }

    /// A digest that cannot be taken for one of another context.
    pub fn derived(context: &Context) -> Self {
        Self { mode: Mode::Derived(*context), ..Self::default() }
    }

    /// The digest of all values put so far.
    pub fn finish(&self) -> [u8; 32] {
        let gathered = &self.gathered[..self.length];
        let hash = match (&self.long, &self.mode) {
            (Some(long), _) => long.as_ref().clone().update(gathered).finalize(),
            (None, Mode::Keyed(key)) => blake3::keyed_hash(key, gathered),
            (None, Mode::Plain) => blake3::hash(gathered),
            (None, Mode::Derived(_)) => self.mode.hasher().update(gathered).finalize(),
        };
        *hash.as_bytes()
    }

    /// Room for more bytes, at least one and at most so many.
    fn room(&mut self, most: usize) -> &mut [u8] {
        if self.length == SHORT {
            let mode = &self.mode;
            let long = self.long.get_or_insert_with(|| Box::new(mode.hasher()));
            long.update(&self.gathered);
            self.length = 0;
        }
        let start = self.length;
        self.length = SHORT.min(start + most);
        &mut self.gathered[start..self.length]
    }
}

impl Sink for Digest {
    fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room(bytes.len());
            let (now, later) = bytes.split_at(room.len());
            room.copy_from_slice(now);
            bytes = later;
        }
    }
    fn numbers(&mut self, mut numbers: &[f64]) {
        while !numbers.is_empty() {
            let whole = (SHORT - self.length) / 8;
            if whole == 0 {
                // The next number lies across the border of two chunks.
                self.bytes(&numbers[0].to_le_bytes());
                numbers = &numbers[1..];
                continue;
            }
            let (now, later) = numbers.split_at(whole.min(numbers.len()));
            for (slot, number) in self.room(8 * now.len()).as_chunks_mut::<8>().0.iter_mut().zip(now) {
                *slot = number.to_le_bytes();
            }
            numbers = later;
        }
    }
}

/// Counts the numbers of a value.
#[derive(Debug, Default)]
pub struct Count(pub usize);

impl Sink for Count {
    fn bytes(&mut self, _: &[u8]) {}
    fn numbers(&mut self, numbers: &[f64]) {
        self.0 += numbers.len();
    }
    fn narrow_numbers(&mut self, numbers: &[f64]) {
        self.numbers(numbers);
    }
}

/// The lengths of all lists of a value: two values of one shape can be computed with together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// The shape of a value.
    pub fn of<T: Codec>(value: &T) -> Self {
        let mut shape = Self::default();
        value.put(&mut shape);
        shape
    }
}

impl Sink for Shape {
    fn bytes(&mut self, _: &[u8]) {}
    fn numbers(&mut self, _: &[f64]) {}
    fn length(&mut self, count: usize) {
        self.0.push(count);
    }
}

/// Looks at every number of an upload: finite, and not too large together.
#[derive(Debug, Default)]
pub struct Door {
    /// Sum of squares.
    pub norm2: f64,
}

impl Sink for Door {
    fn bytes(&mut self, _: &[u8]) {}
    #[inline]
    fn numbers(&mut self, numbers: &[f64]) {
        // A number that is not finite makes the sum so, too.
        self.norm2 += crate::norm2(numbers);
    }
    fn narrow_numbers(&mut self, numbers: &[f64]) {
        self.numbers(numbers);
    }
}

/// Looks at every number of an ask: finite, and none larger than a bound.
#[derive(Debug)]
pub struct Within {
    bound: f64,
    all: bool,
}

impl Within {
    /// Whether every number of these values is finite and at most `bound` in size.
    pub fn holds<A: Codec, B: Codec>(bound: f64, first: &A, second: &B) -> bool {
        let mut within = Self { bound: bound.min(f64::MAX), all: true };
        first.put(&mut within);
        second.put(&mut within);
        within.all
    }
}

impl Sink for Within {
    fn bytes(&mut self, _: &[u8]) {}
    #[inline]
    fn numbers(&mut self, numbers: &[f64]) {
        // What is not a number is not at most anything.
        self.all &= numbers.iter().all(|x| x.abs() <= self.bound);
    }
    fn narrow_numbers(&mut self, numbers: &[f64]) {
        self.numbers(numbers);
    }
}

/// Reads values from bytes.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        if count > self.rest.len() {
            return Err(Damaged);
        }
        let (head, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        self.take(N)?.try_into().map_err(|_| Damaged)
    }

    /// A length that the remaining bytes can hold, so that bad bytes cannot ask for all memory.
    pub fn length(&mut self, item: usize) -> Result<usize, Damaged> {
        let count = u64::from_le_bytes(self.array()?);
        let count = usize::try_from(count).map_err(|_| Damaged)?;
        match count.checked_mul(item.max(1)) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(Damaged),
        }
    }
}

macro_rules! integer_codec {
    ($($type:ident),*) => {$(
        impl Codec for $type {
            fn schema() -> String {
                stringify!($type).into()
            }
            fn put<S: Sink>(&self, sink: &mut S) {
                sink.bytes(&self.to_le_bytes());
            }
            fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
                Ok(Self::from_le_bytes(reader.array()?))
            }
        }
    )*};
}

integer_codec!(u16, u32, u64);

/// Bytes are taken as they are, many at a time.
impl Codec for u8 {
    fn schema() -> String {
        "u8".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.bytes(&[*self]);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let [byte] = reader.array()?;
        Ok(byte)
    }
    fn put_all<S: Sink>(items: &[Self], sink: &mut S) {
        sink.bytes(items);
    }
    fn get_all(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Damaged> {
        Ok(reader.take(count)?.to_vec())
    }
}

/// A digest or a fingerprint.
impl Codec for [u8; 32] {
    fn schema() -> String {
        "[u8;32]".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.bytes(self);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        reader.array()
    }
}

impl Codec for () {
    fn schema() -> String {
        "()".into()
    }
    fn put<S: Sink>(&self, _: &mut S) {}
    fn get(_: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(())
    }
}

impl Codec for bool {
    fn schema() -> String {
        "bool".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.bytes(&[u8::from(*self)]);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        match reader.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [_] => Err(Damaged),
        }
    }
}

impl Codec for f64 {
    fn schema() -> String {
        "f64".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.numbers(&[*self]);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(f64::from_le_bytes(reader.array()?))
    }
}

impl Codec for Vec<f64> {
    fn schema() -> String {
        "[f64]".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.length(self.len());
        sink.numbers(self);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let count = reader.length(8)?;
        let bytes = reader.take(count * 8)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        Ok(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }
}

/// Parameters of a model. Those of a net are numbers of single precision kept in f64: where all are, they take half the
/// bytes, and nothing is lost either way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights(pub Vec<f64>);

impl std::ops::Deref for Weights {
    type Target = Vec<f64>;
    fn deref(&self) -> &Vec<f64> {
        &self.0
    }
}

impl std::ops::DerefMut for Weights {
    fn deref_mut(&mut self) -> &mut Vec<f64> {
        &mut self.0
    }
}

impl Codec for Weights {
    fn schema() -> String {
        "weights".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        let narrow = self.iter().all(|value| f64::from(*value as f32).to_bits() == value.to_bits());
        sink.length(self.len());
        narrow.put(sink);
        if narrow { sink.narrow_numbers(self) } else { sink.numbers(self) }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let count = reader.length(4)?;
        if bool::get(reader)? {
            let (numbers, _) = reader.take(count.checked_mul(4).ok_or(Damaged)?)?.as_chunks::<4>();
            Ok(Self(numbers.iter().map(|number| f64::from(f32::from_le_bytes(*number))).collect()))
        } else {
            let (numbers, _) = reader.take(count.checked_mul(8).ok_or(Damaged)?)?.as_chunks::<8>();
            Ok(Self(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect()))
        }
    }
}

/// A list of values that are not plain numbers.
impl<T: Codec> Codec for Box<[T]> {
    fn schema() -> String {
        format!("[{}]", T::schema())
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.length(self.len());
        T::put_all(self, sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let count = reader.length(0)?;
        Ok(T::get_all(reader, count)?.into_boxed_slice())
    }
}

/// Bytes that are mostly constants.
impl Codec for Cow<'static, [u8]> {
    fn schema() -> String {
        Box::<[u8]>::schema()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.length(self.len());
        u8::put_all(self, sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Cow::Owned(Box::<[u8]>::get(reader)?.into_vec()))
    }
}

impl<T: Codec> Codec for Option<T> {
    fn schema() -> String {
        format!("{}?", T::schema())
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        self.is_some().put(sink);
        if let Some(value) = self {
            value.put(sink);
        }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(if bool::get(reader)? { Some(T::get(reader)?) } else { None })
    }
}

impl<T: Codec, U: Codec> Codec for (T, U) {
    fn schema() -> String {
        format!("({},{})", T::schema(), U::schema())
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        self.0.put(sink);
        self.1.put(sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok((T::get(reader)?, U::get(reader)?))
    }
}

/// Declares a struct of public fields together with its codec.
#[macro_export]
macro_rules! record {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$field_meta:meta])* $field:ident : $type:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        $vis struct $name { $($(#[$field_meta])* pub $field: $type),* }

        impl $crate::codec::Codec for $name {
            fn schema() -> String {
                let fields: Vec<String> = vec![
                    $(format!("{}:{}", stringify!($field), <$type as $crate::codec::Codec>::schema())),*
                ];
                format!("{}{{{}}}", stringify!($name), fields.join(","))
            }
            fn put<S: $crate::codec::Sink>(&self, sink: &mut S) {
                $($crate::codec::Codec::put(&self.$field, sink);)*
            }
            fn get(reader: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::Damaged> {
                Ok(Self { $($field: $crate::codec::Codec::get(reader)?),* })
            }
        }
    )*};
}

#[cfg(test)]
mod tests {
    use super::*;

    record! {
        /// A sample.
        struct Pick { model: u32, loss: f64, gradient: Vec<f64>, names: Box<[u8]>, last: Option<f64> }
    }

    fn sample() -> Pick {
        Pick { model: 7, loss: -0.5, gradient: vec![1.0, -2.0], names: Box::from([1u8, 2]), last: Some(3.0) }
    }

    #[test]
    fn what_goes_in_comes_out_and_damage_is_noticed() {
        let bytes = sample().to_bytes();
        assert_eq!(Pick::from_bytes(&bytes), Ok(sample()));
        for cut in 0..bytes.len() {
            assert_eq!(Pick::from_bytes(&bytes[..cut]), Err(Damaged), "cut at {cut}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(Pick::from_bytes(&longer), Err(Damaged));
        let mut huge = bytes;
        huge[12..20].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Pick::from_bytes(&huge), Err(Damaged));
    }

    #[test]
    fn weights_take_half_the_bytes_where_nothing_is_lost() {
        let narrow = Weights(vec![1.5, -0.0, f64::from(0.1f32), f64::from(f32::MIN_POSITIVE)]);
        let wide = Weights(vec![1.5, 0.1]);
        assert_eq!((narrow.to_bytes().len(), wide.to_bytes().len()), (9 + 16, 9 + 16));
        for weights in [narrow, wide, Weights::default(), Weights(vec![f64::INFINITY, 1e300])] {
            let bytes = weights.to_bytes();
            let again = Weights::from_bytes(&bytes).unwrap();
            assert!(weights.iter().zip(again.iter()).all(|(a, b)| a.to_bits() == b.to_bits()));
            assert_eq!(weights.len(), again.len());
            assert_eq!(Digest::of(&weights), *blake3::hash(&bytes).as_bytes());
            assert!((0..bytes.len()).all(|cut| Weights::from_bytes(&bytes[..cut]).is_err()));
            let mut door = Door::default();
            weights.put(&mut door);
            assert_eq!(door.norm2, crate::norm2(&weights));
        }
    }

    #[test]
    fn the_schema_names_every_field_and_the_digest_sees_every_value() {
        assert_eq!(Pick::schema(), "Pick{model:u32,loss:f64,gradient:[f64],names:[u8],last:f64?}");
        let mut other = sample();
        other.gradient[1] = 2.0;
        assert_ne!(Digest::of(&sample()), Digest::of(&other));
        assert_eq!(Digest::of(&sample()), *blake3::hash(&sample().to_bytes()).as_bytes());
    }

    #[test]
    fn a_digest_of_any_length_is_that_of_the_bytes() {
        for (head, count) in [(0, 127), (3, 127), (7, 128), (0, 128), (5, 129), (8, 700)] {
            let numbers: Vec<f64> = (0..count).map(f64::from).collect();
            let value = (vec![7u8; head].into_boxed_slice(), numbers);
            let bytes = value.to_bytes();
            assert_eq!(Digest::of(&value), *blake3::hash(&bytes).as_bytes(), "{head} and {count}");
            let mut keyed = Digest::keyed(&[9; 32]);
            value.put(&mut keyed);
            assert_eq!(keyed.finish(), *blake3::keyed_hash(&[9; 32], &bytes).as_bytes());
        }
    }

    #[test]
    fn a_derived_digest_depends_on_its_context() {
        let digest = |mut digest: Digest, length: usize| {
            vec![1.0; length].put(&mut digest);
            digest.finish()
        };
        for length in [1, 200, 2000] {
            let plain = digest(Digest::default(), length);
            let derived = |words| Digest::derived(&context(words));
            assert_ne!(digest(derived("a"), length), digest(derived("b"), length));
            assert_ne!(digest(derived("a"), length), plain);
            let mut hasher = blake3::Hasher::new_derive_key("a");
            hasher.update(&vec![1.0; length].to_bytes());
            assert_eq!(digest(derived("a"), length), *hasher.finalize().as_bytes());
        }
    }

    #[test]
    fn a_shape_is_the_lengths_and_nothing_else() {
        let mut other = Pick { model: 8, loss: 0.5, ..sample() };
        other.gradient[0] = 9.0;
        assert_eq!(Shape::of(&sample()), Shape::of(&other));
        other.gradient.push(1.0);
        assert_ne!(Shape::of(&sample()), Shape::of(&other));
    }

    #[test]
    fn the_door_sees_numbers_only() {
        let mut door = Door::default();
        sample().put(&mut door);
        assert_eq!(door.norm2, 0.25 + 5.0 + 9.0);
        let mut bad = sample();
        bad.loss = f64::NAN;
        let mut door = Door::default();
        bad.put(&mut door);
        assert!(!door.norm2.is_finite());
    }
}
