//! Layers in words: `conv 16 size 8 stride 2 pad 2`, `batch-norm`, `group-norm 4`, `max-pool 2 stride 1`,
//! `dense 32`, `tanh`, `relu`.

use std::fmt;

/// One step of a net.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Two-dimensional convolution with a square kernel and a bias per channel.
    Conv {
        /// Output channels.
        channels: usize,
        /// Height and width of the kernel.
        size: usize,
        /// Distance between two places of the kernel.
        stride: usize,
        /// Zeros around the input.
        padding: usize,
    },
    /// Normalisation of each channel over batch and places, then scale and shift.
    BatchNorm,
    /// Normalisation of each group of channels within a record, then scale and shift per channel.
    GroupNorm {
        /// Into how many groups the channels are cut.
        groups: usize,
    },
    /// The largest number of each window.
    MaxPool {
        /// Height and width of the window.
        size: usize,
        /// Distance between two windows; below `size` they overlap.
        stride: usize,
    },
    /// All inputs to each output, with a bias.
    Dense {
        /// Outputs.
        units: usize,
    },
    /// Hyperbolic tangent.
    Tanh,
    /// The positive part.
    Relu,
}

/// What every message about an unreadable layer ends with.
const FORMS: &str = "layers are `conv CHANNELS size N [stride N] [pad N]`, `batch-norm`, `group-norm GROUPS`, \
                     `max-pool SIZE [stride N]`, `dense UNITS`, `tanh` and `relu`";

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Conv { channels, size, stride, padding } => {
                write!(f, "conv {channels} size {size} stride {stride} pad {padding}")
            }
            Self::BatchNorm => f.write_str("batch-norm"),
            Self::GroupNorm { groups } => write!(f, "group-norm {groups}"),
            Self::MaxPool { size, stride } => write!(f, "max-pool {size} stride {stride}"),
            Self::Dense { units } => write!(f, "dense {units}"),
            Self::Tanh => f.write_str("tanh"),
            Self::Relu => f.write_str("relu"),
        }
    }
}

/// The words behind the name of a layer, taken one after the other.
struct Words<'a> {
    text: &'a str,
    left: Vec<&'a str>,
}

impl Words<'_> {
    fn number(&self, word: &str, least: usize) -> Result<usize, String> {
        match word.parse::<u32>() {
            Ok(number) if number as usize >= least => Ok(number as usize),
            _ => Err(format!(
                "layer `{}`: `{word}` is not a whole number of at least {least}; {FORMS}",
                self.text
            )),
        }
    }

    /// The number right behind the name.
    fn first(&mut self, what: &str) -> Result<usize, String> {
        if self.left.is_empty() {
            return Err(format!("layer `{}` lacks its number of {what}; {FORMS}", self.text));
        }
        let word = self.left.remove(0);
        self.number(word, 1)
    }

    /// The number behind a key, wherever that stands.
    fn keyed(&mut self, key: &str, least: usize) -> Result<Option<usize>, String> {
        let Some(at) = self.left.iter().position(|word| *word == key) else { return Ok(None) };
        self.left.remove(at);
        if at >= self.left.len() {
            return Err(format!("layer `{}`: nothing behind `{key}`; {FORMS}", self.text));
        }
        let word = self.left.remove(at);
        self.number(word, least).map(Some)
    }
}

impl Layer {
    /// Reads a layer in words. `stride` of a convolution is 1 and `pad` 0 where not given; the stride of a pool is
    /// its size.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut all = text.split_whitespace();
        let name = all.next().unwrap_or_default();
        let mut words = Words { text, left: all.collect() };
        let layer = match name {
            "conv" => Self::Conv {
                channels: words.first("channels")?,
                size: words
                    .keyed("size", 1)?
                    .ok_or_else(|| format!("layer `{text}` lacks `size N`; {FORMS}"))?,
                stride: words.keyed("stride", 1)?.unwrap_or(1),
                padding: words.keyed("pad", 0)?.unwrap_or(0),
            },
            "batch-norm" => Self::BatchNorm,
            "group-norm" => Self::GroupNorm { groups: words.first("groups")? },
            "max-pool" => {
                let size = words.first("places")?;
                Self::MaxPool { size, stride: words.keyed("stride", 1)?.unwrap_or(size) }
            }
            "dense" => Self::Dense { units: words.first("units")? },
            "tanh" => Self::Tanh,
            "relu" => Self::Relu,
            _ => return Err(format!("layer `{text}` is unknown; {FORMS}")),
        };
        match words.left.first() {
            Some(word) => Err(format!("layer `{text}`: `{word}` does not belong there; {FORMS}")),
            None => Ok(layer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layers() -> impl Strategy<Value = Layer> {
        let n = || 1usize..5000;
        prop_oneof![
            (n(), n(), n(), 0usize..900).prop_map(|(channels, size, stride, padding)| Layer::Conv {
                channels,
                size,
                stride,
                padding
            }),
            Just(Layer::BatchNorm),
            n().prop_map(|groups| Layer::GroupNorm { groups }),
            (n(), n()).prop_map(|(size, stride)| Layer::MaxPool { size, stride }),
            n().prop_map(|units| Layer::Dense { units }),
            Just(Layer::Tanh),
            Just(Layer::Relu),
        ]
    }

    proptest! {
        #[test]
        fn words_and_layers_are_inverse(layer in layers()) {
            prop_assert_eq!(Layer::parse(&layer.to_string()), Ok(layer));
        }
    }

    #[test]
    fn presets_of_words() {
        let conv = |stride, padding| Ok(Layer::Conv { channels: 6, size: 5, stride, padding });
        assert_eq!(Layer::parse("conv 6 size 5"), conv(1, 0));
        assert_eq!(Layer::parse("  conv 6  pad 3 size 5 stride 2 "), conv(2, 3));
        assert_eq!(Layer::parse("max-pool 2"), Ok(Layer::MaxPool { size: 2, stride: 2 }));
    }

    #[test]
    fn bad_words_are_named() {
        for (text, part) in [
            ("", "unknown"),
            ("convolution 3", "`convolution 3` is unknown"),
            ("conv size 5", "`size` is not a whole number of at least 1"),
            ("conv 6", "lacks `size N`"),
            ("conv 6 size", "nothing behind `size`"),
            ("conv 6 size 5 stride 0", "`0` is not a whole number of at least 1"),
            ("conv 6 size 5 pad -1", "`-1` is not a whole number"),
            ("dense", "lacks its number of units"),
            ("dense 3 4", "`4` does not belong there"),
            ("relu 1", "`1` does not belong there"),
            ("group-norm 0", "at least 1"),
            ("max-pool 2 stride", "nothing behind `stride`"),
            ("dense 99999999999", "not a whole number"),
        ] {
            let error = Layer::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
