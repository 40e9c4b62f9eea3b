//! Colours: one method, one colour, in every figure of a report.
//!
//! The hues are those of Okabe and Ito, chosen to stay apart for colour-blind readers, darkened
//! where white paper needs it and extended by four; each also has a lighter twin for dark paper.
//! Every colour comes with a marker shape, so colour is never the only signal.

use std::collections::BTreeMap;

/// Light and dark variants, by slot.
pub(super) const METHOD_COLOURS: [(&str, &str); 12] = [
    ("#0072b2", "#4ba6e3"),
    ("#d55e00", "#f58a45"),
    ("#009e73", "#2cc598"),
    ("#b8578f", "#e093bf"),
    ("#e69f00", "#f2b53a"),
    ("#56b4e9", "#9ad6f7"),
    ("#222222", "#e8e8e8"),
    ("#8c7d00", "#f0e442"),
    ("#7d4a27", "#cf9a6b"),
    ("#777777", "#a3a3a3"),
    ("#4b3aa8", "#b0a4ff"),
    ("#8a1c3c", "#ef7f96"),
];

/// Light and dark variants for clusters: paler than any method colour, so that a slice of a server
/// is not mistaken for a method. The last is for all further clusters.
pub(super) const CLUSTER_COLOURS: [(&str, &str); 9] = [
    ("#77aadd", "#6d9fd1"),
    ("#ee8866", "#dd7d5d"),
    ("#bbcc33", "#aaba30"),
    ("#ffaabb", "#e695a7"),
    ("#44bb99", "#3dab8b"),
    ("#eedd88", "#d6c670"),
    ("#99ddff", "#85c6e6"),
    ("#aa99cc", "#9f8fc4"),
    ("#c4c4c4", "#7c7c7c"),
];

/// Light and dark variants of a scale from little to much: ever darker on white paper, ever lighter
/// on dark paper, through several hues so that steps are seen.
pub(super) const HEAT_COLOURS: [(&str, &str); 10] = [
    ("#d5e9c6", "#27445e"),
    ("#aedbbc", "#295974"),
    ("#86cbb4", "#2b6f88"),
    ("#5ab5b5", "#2d8894"),
    ("#399cb3", "#3ba19b"),
    ("#2c7fad", "#57b89a"),
    ("#2563a2", "#7ecc95"),
    ("#234692", "#abdd8e"),
    ("#1f2f76", "#d4ea9c"),
    ("#191a57", "#fbf7b0"),
];

/// Ink, muted ink, grid lines, paper, and a cell without anything in it.
pub(super) const NEUTRALS: [(&str, &str, &str); 5] = [
    ("ink", "#1d2125", "#e7e9ec"),
    ("muted", "#5b646d", "#a2abb5"),
    ("grid", "#e3e6ea", "#333a42"),
    ("paper", "#ffffff", "#171b20"),
    ("none", "#f0f2f5", "#20262d"),
];

/// Which colour each method of a report has.
#[derive(Debug, Clone, Default)]
pub(super) struct Palette {
    slots: BTreeMap<String, usize>,
}

impl Palette {
    /// Gives every method its fixed colour: of two that share one, the earlier keeps it. The others get the first free
    /// one from a place that depends only on their name.
    pub(super) fn new<'a>(methods: impl Iterator<Item = &'a str>, fixed: &[(String, usize)]) -> Self {
        let mut names: Vec<&str> = methods.collect();
        names.sort_unstable();
        names.dedup();
        let place = |name: &str| fixed.iter().position(|(fixed, _)| fixed == name);
        let wanted = |name: &str| {
            place(name).map_or_else(|| hashed_slot(name), |at| fixed[at].1 % METHOD_COLOURS.len())
        };
        let (mut known, unknown): (Vec<&str>, Vec<&str>) =
            names.into_iter().partition(|name| place(name).is_some());
        known.sort_by_key(|name| place(name));
        let mut slots: BTreeMap<String, usize> = BTreeMap::new();
        let mut taken = [false; METHOD_COLOURS.len()];
        let mut later = Vec::new();
        for name in known {
            let slot = wanted(name);
            if taken[slot] {
                later.push(name);
            } else {
                taken[slot] = true;
                slots.insert(name.to_owned(), slot);
            }
        }
        for name in later.into_iter().chain(unknown) {
            let slot = first_free(wanted(name), &taken);
            taken[slot] = true;
            slots.insert(name.to_owned(), slot);
        }
        Self { slots }
    }

    /// The slots of one figure's methods. Two methods of one figure share a colour only if there
    /// are more methods than colours: where the report as a whole ran out, a clash is moved here.
    pub(super) fn for_figure(&self, methods: &[&str]) -> Vec<usize> {
        let mut chosen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut taken = [false; METHOD_COLOURS.len()];
        for method in methods {
            if chosen.contains_key(method) {
                continue;
            }
            let wanted = self.slots.get(*method).copied().unwrap_or_else(|| hashed_slot(method));
            let slot = first_free(wanted, &taken);
            taken[slot] = true;
            chosen.insert(method, slot);
        }
        methods.iter().map(|method| chosen.get(method).copied().unwrap_or(0)).collect()
    }
}

/// The slot itself if free, else the next free one; itself again if none is.
fn first_free(wanted: usize, taken: &[bool]) -> usize {
    (0..taken.len())
        .map(|offset| (wanted + offset) % taken.len())
        .find(|slot| !taken[*slot])
        .unwrap_or(wanted)
}

/// FNV-1a: small, and the same on every machine and in every version of the compiler.
fn hashed_slot(name: &str) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash % METHOD_COLOURS.len() as u64) as usize
}

/// The colour of a cluster.
pub(super) fn cluster_slot(cluster: usize) -> usize {
    cluster.min(CLUSTER_COLOURS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed() -> Vec<(String, usize)> {
        let colours = fedkin_run::Registry::native().colours();
        assert!(colours.iter().all(|(_, slot)| *slot < METHOD_COLOURS.len()));
        colours
    }

    #[test]
    fn a_method_keeps_its_colour_whatever_stands_beside_it() {
        let palette = Palette::new(["gfl", "mine", "pgfl"].into_iter(), &fixed());
        let together = palette.for_figure(&["pgfl", "gfl", "mine"]);
        assert_eq!(together[..2], [0, 1]);
        assert_eq!(palette.for_figure(&["mine"])[0], together[2]);
    }

    #[test]
    fn who_shares_a_colour_gives_way_to_the_earlier_one() {
        let palette = Palette::new(["fedavg", "single-step", "pgfl", "fedgl"].into_iter(), &fixed());
        let slots = palette.for_figure(&["fedavg", "single-step", "pgfl", "fedgl"]);
        assert_eq!(slots[1..], [9, 0, 10]);
        assert!(![9, 0, 10].contains(&slots[0]));
    }

    #[test]
    fn no_clash_within_a_figure_while_colours_last() {
        let names: Vec<String> = (0..30).map(|i| format!("method {i}")).collect();
        let palette = Palette::new(names.iter().map(String::as_str), &fixed());
        let figure: Vec<&str> = names[10..22].iter().map(String::as_str).collect();
        let mut slots = palette.for_figure(&figure);
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), 12);
    }

    #[test]
    fn more_methods_than_colours_is_no_panic() {
        let names: Vec<String> = (0..30).map(|i| format!("method {i}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(Palette::default().for_figure(&all).len(), 30);
    }
}
