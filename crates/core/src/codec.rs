//! One visitor encodes, hashes and checks: what crosses between nodes is plain data.
//!
//! A `record!` declares a struct together with its encoding: little-endian, fields in order, lengths
//! first. Its schema (names and types) is text that both sides of a connection compare.

use thiserror::Error;

/// Where values go: bytes, a digest, or the door that looks for bad numbers.
pub trait Sink {
    /// Raw bytes: lengths, indices, words.
    fn bytes(&mut self, bytes: &[u8]);
    /// Numbers that mean something.
    fn numbers(&mut self, numbers: &[f64]);
}

/// Data that can cross between nodes and be kept on disk.
pub trait Codec: Sized {
    /// Names and types, compared before anything is decoded.
    fn schema() -> String;
    /// Visits every value in order.
    fn put<S: Sink>(&self, sink: &mut S);
    /// Reads back what `put` wrote.
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged>;

    /// The bytes of this value.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Bytes::default();
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

/// Collects bytes.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl Sink for Bytes {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    fn numbers(&mut self, numbers: &[f64]) {
        self.0.reserve(numbers.len() * 8);
        for number in numbers {
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// A digest over values, without building their bytes.
#[derive(Debug, Default)]
pub struct Digest(blake3::Hasher);

impl Digest {
    /// The digest of one value.
    pub fn of<T: Codec>(value: &T) -> [u8; 32] {
        let mut digest = Self::default();
        value.put(&mut digest);
        digest.finish()
    }

    /// A digest that only the holder of a key can make.
    pub(crate) fn keyed(key: &[u8; 32]) -> Self {
        Self(blake3::Hasher::new_keyed(key))
    }

    /// A digest that cannot be taken for one of another context.
    pub(crate) fn derived(context: &'static str) -> Self {
        Self(blake3::Hasher::new_derive_key(context))
    }

    /// The digest of all values put so far.
    pub fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

impl Sink for Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn numbers(&mut self, numbers: &[f64]) {
        let mut buffer = [0u8; 512];
        for part in numbers.chunks(64) {
            for (slot, number) in buffer.chunks_exact_mut(8).zip(part) {
                slot.copy_from_slice(&number.to_le_bytes());
            }
            self.0.update(&buffer[..part.len() * 8]);
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
}

/// Looks at every number of an upload: finite, and not too large together.
#[derive(Debug, Default)]
pub struct Door {
    /// Sum of squares.
    pub norm2: f64,
}

impl Sink for Door {
    fn bytes(&mut self, _: &[u8]) {}
    fn numbers(&mut self, numbers: &[f64]) {
        // A number that is not finite makes the sum so, too.
        self.norm2 += crate::numeric::norm2(numbers);
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

integer_codec!(u8, u16, u32, u64);

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
        sink.bytes(&(self.len() as u64).to_le_bytes());
        sink.numbers(self);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let count = reader.length(8)?;
        let bytes = reader.take(count * 8)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        Ok(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }
}

/// A list of values that are not plain numbers.
impl<T: Codec> Codec for Box<[T]> {
    fn schema() -> String {
        format!("[{}]", T::schema())
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.bytes(&(self.len() as u64).to_le_bytes());
        self.iter().for_each(|item| item.put(sink));
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let count = reader.length(0)?;
        // Grown step by step: the count is not to be believed before the items are there.
        let mut items = Vec::with_capacity(count.min(reader.left() + 1));
        for _ in 0..count {
            items.push(T::get(reader)?);
            if items.len() > (1 << 32) {
                return Err(Damaged);
            }
        }
        Ok(items.into_boxed_slice())
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
    fn the_schema_names_every_field_and_the_digest_sees_every_value() {
        assert_eq!(Pick::schema(), "Pick{model:u32,loss:f64,gradient:[f64],names:[u8],last:f64?}");
        let mut other = sample();
        other.gradient[1] = 2.0;
        assert_ne!(Digest::of(&sample()), Digest::of(&other));
        assert_eq!(Digest::of(&sample()), *blake3::hash(&sample().to_bytes()).as_bytes());
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
