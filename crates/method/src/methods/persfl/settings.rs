//! The keys of the method, and what they mean together.

use super::PersFl;
use super::draw::Sampling;
use crate::algorithm::Algorithm;
use crate::methods::guard::{ACCEPT, Accept};
use crate::methods::scale::GradientScale;
use crate::registry::{Context, Method, TARGETS, Targets};
use fedkin_learner::Abilities;
use fedkin_privacy::Protection;
use fedkin_settings::{Kind, Preset, choice, settings};

choice! {
    /// Where models begin.
    pub enum PersFlStart {
        /// At zero.
        Zero = "zero",
        /// Uniform in [0, 1).
        Uniform = "uniform",
        /// Standard normal.
        Normal = "normal",
    }
}

settings! {
    /// Keys of `PersFL`.
    pub struct PersFlSettings {
        /// The clients that get a model; the others help.
        targets: Targets => param TARGETS;
        candidates: Option<u32> => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Absent,
            "clients that a target asks for a step in a round (B); 20 where absent, 5 with rewards";
        learning_rate: Option<f64> => Kind::ABOVE_ZERO, Preset::Absent,
            "size of a gradient step (eta); 0.01 where absent, 0.1 with rewards";
        sampling: Sampling => Kind::Choice(Sampling::WORDS), Preset::Text("uniform"),
            "who is drawn: anybody, clients of the target's own cluster in the roster (an oracle), those that were \
             worth most (bandit), or the same for a while until groups of kin train together (graph)";
        /// Which of the offered steps a target takes.
        accept: Accept => param ACCEPT;
        gradient_scale: GradientScale => Kind::Choice(GradientScale::WORDS), Preset::Text("mean"),
            "gradient of the mean loss of a candidate, or half its number of records times that";
        start: PersFlStart => Kind::Choice(PersFlStart::WORDS), Preset::Text("zero"),
            "first models: zero, uniform in [0, 1), or standard normal";
        warm_up: Option<u32> => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Absent,
            "sampling = \"graph\": rounds of probing before groups are formed; 40 where absent";
        purity: Option<bool> => Kind::Flag, Preset::Absent,
            "sampling = \"graph\": let members whose loss stays high leave, and split and merge groups; true where \
             absent";
    }
}

/// `warm_up` where it is absent. The key is refused where it has no meaning, so it has no default in the table.
const WARM_UP: u32 = 40;
/// `purity` where it is absent, for the same reason.
const PURITY: bool = true;

impl Method for PersFl {
    type Settings = PersFlSettings;
    const NEEDS: Abilities = Abilities::PARAMETERS.and(Abilities::VALUE).and(Abilities::GRADIENT);

    fn build(settings: PersFlSettings, context: &Context) -> Result<Self, String> {
        if context.privacy.demanded() {
            return Err(format!(
                "{} lets gradients, choices and losses out as they are, and has no mechanism for them: set \
                 privacy.mechanism = \"none\", or use {}",
                Self::NAME,
                context.covered(&[Protection::Zcdp, Protection::DpSgd])
            ));
        }
        let PersFlSettings { sampling, warm_up, purity, .. } = settings;
        if sampling != Sampling::Graph {
            for (key, there) in [("warm_up", warm_up.is_some()), ("purity", purity.is_some())] {
                if there {
                    return Err(format!(
                        "algorithm.{key} is for sampling = \"graph\": remove it, or set that"
                    ));
                }
            }
        }
        Ok(Self {
            families: context.families.clone(),
            candidates: settings.candidates.unwrap_or(sampling.candidates()),
            learning_rate: settings.learning_rate.unwrap_or(sampling.learning_rate()),
            sampling,
            accept: settings.accept,
            gradient_scale: settings.gradient_scale,
            start: settings.start,
            warm_up: warm_up.unwrap_or(WARM_UP),
            watched: purity.unwrap_or(PURITY),
        })
    }

    fn targets(settings: &PersFlSettings) -> Targets {
        settings.targets.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_settings::{Settings, named};

    #[test]
    fn the_help_tells_what_holds_for_absent_keys() {
        let help = |name| named(PersFlSettings::PARAMS, name).help;
        let (without, with) = (Sampling::Uniform, Sampling::Bandit);
        let both = |a: String, b: String| format!("{a} where absent, {b} with rewards");
        let candidates = both(without.candidates().to_string(), with.candidates().to_string());
        let rates = both(without.learning_rate().to_string(), with.learning_rate().to_string());
        assert!(help("candidates").ends_with(&candidates));
        assert!(help("learning_rate").ends_with(&rates));
        assert!(help("warm_up").ends_with(&format!("{WARM_UP} where absent")));
        assert!(help("purity").ends_with(&format!("{PURITY} where absent")));
    }
}
