//! Learners that misbehave, around any learner: the public half is as it was, and what a client computes with its records
//! is spoilt. Methods that are not known here are tried with them as the native ones are.

use crate::worlds::Small;
use fedkin_learner::Dataset;
use fedkin_learner::hypothesis::Sample;
use fedkin_learner::model::Unsolved;
use fedkin_learner::model::neural::Descent;
use fedkin_learner::signals::Smooth;
use fedkin_learner::{
    Abilities, Failure, Family, Learner, Output, Precision, Pull, Reached, Role, Share, Terms,
};
use fedkin_method::Families;
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::rng::PublicRng;
use std::ops::Range;
use std::sync::Arc;

/// What a learner does wrong, whatever it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It says that its training diverged.
    Diverges,
    /// Its numbers are not finite.
    NotFinite,
    /// It says that its problem was not solved.
    Unsolved,
    /// Its numbers are larger than any upload may be.
    TooLarge,
    /// Its best fits have a number more than a model has.
    OtherLength,
}

impl Misbehaviour {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Diverges, Self::NotFinite, Self::Unsolved, Self::TooLarge, Self::OtherLength];

    /// Gives these clients of a world, as a method sees it, learners that do this.
    pub fn spoil(self, world: &mut Small, clients: &[u32]) {
        let sound = world.context.families.clone();
        let count = sound.count();
        let kept = (0..count).map(|number| Misbehaving { sound: sound.clone(), number, how: None });
        let spoilt = (0..count).map(|number| Misbehaving { sound: sound.clone(), number, how: Some(self) });
        let all = kept.chain(spoilt).map(|family| Arc::new(family) as Arc<dyn Family>);
        world.context.families = Families::several(all.collect()).unwrap();
        let members = 0..world.federation.members().len() as u32;
        let learner =
            |id: u32| world.run.learner(id) as u32 + if clients.contains(&id) { count as u32 } else { 0 };
        world.run.learners = Some(members.map(learner).collect());
    }

    fn failure(self) -> Option<Failure> {
        match self {
            Self::Diverges => Some(Failure::Diverged),
            Self::Unsolved => Some(Failure::Unsolved(UNSOLVED)),
            Self::NotFinite | Self::TooLarge | Self::OtherLength => None,
        }
    }

    /// The number that takes the place of all numbers of a model.
    fn model(self) -> Option<f64> {
        match self {
            Self::NotFinite => Some(f64::NAN),
            // Above the bound of a small world, and not so far that noise would be lost in its rounding.
            Self::TooLarge => Some(1e7),
            _ => None,
        }
    }

    /// The same of a loss or a gradient, which a short step must not make small.
    fn slope(self) -> Option<f64> {
        if self == Self::TooLarge { Some(1e60) } else { self.model() }
    }
}

const UNSOLVED: Unsolved = Unsolved("it has no solution today");

/// A family of a run, sound or with learners that misbehave.
#[derive(Debug)]
struct Misbehaving {
    sound: Families,
    number: usize,
    how: Option<Misbehaviour>,
}

impl Misbehaving {
    fn inner(&self) -> &dyn Family {
        self.sound.get(self.number).unwrap()
    }
}

impl Family for Misbehaving {
    fn name(&self) -> &str {
        self.inner().name()
    }
    fn has(&self) -> Abilities {
        self.inner().has()
    }
    fn output(&self) -> Output {
        self.inner().output()
    }
    fn dimension(&self, columns: usize) -> usize {
        self.inner().dimension(columns)
    }
    fn takes(&self, columns: usize) -> Result<(), String> {
        self.inner().takes(columns)
    }
    fn precision(&self) -> Precision {
        self.inner().precision()
    }
    fn groups(&self) -> Vec<(Role, Range<usize>)> {
        self.inner().groups()
    }
    fn is_determined(&self) -> bool {
        self.inner().is_determined()
    }
    fn squared_norm(&self) -> f64 {
        self.inner().squared_norm()
    }
    fn shrink(&self, w: &mut [f64], t: f64) {
        self.inner().shrink(w, t);
    }
    fn start(&self, dimension: usize, rng: &mut PublicRng) -> Vec<f64> {
        self.inner().start(dimension, rng)
    }
    fn round(&self, w: &mut [f64]) {
        self.inner().round(w);
    }
    fn prefers_batches(&self) -> bool {
        self.inner().prefers_batches()
    }
    fn least_batch(&self) -> usize {
        self.inner().least_batch()
    }
    fn why_not(&self, ability: Abilities) -> Option<&'static str> {
        self.inner().why_not(ability)
    }
    fn join(&self, data: &Arc<Dataset>, terms: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        let sound = self.inner().join(data, terms)?;
        Ok(match self.how {
            Some(how) => Box::new(Spoilt { sound, how }),
            None => sound,
        })
    }
    fn fit(&self, sample: &Sample<'_>, share: Share) -> Result<Vec<f64>, Unsolved> {
        let fitted = self.inner().fit(sample, share)?;
        match self.how {
            Some(Misbehaviour::Diverges | Misbehaviour::Unsolved) => Err(UNSOLVED),
            Some(how) => Ok(spoilt(how, fitted)),
            None => Ok(fitted),
        }
    }
    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64])) {
        self.inner().predict(w, data, each);
    }
    fn mean_loss(&self, w: &[f64], data: &Dataset) -> f64 {
        self.inner().mean_loss(w, data)
    }
    fn is_model(&self, w: &[f64], columns: usize, rows: usize) -> bool {
        self.inner().is_model(w, columns, rows)
    }
    fn constant(&self, columns: usize) -> Vec<f64> {
        self.inner().constant(columns)
    }
    fn holds_records(&self) -> bool {
        self.inner().holds_records()
    }
    fn interpolates(&self) -> bool {
        self.inner().interpolates()
    }
    fn claimed_bound(&self) -> Option<f64> {
        self.inner().claimed_bound()
    }
    fn is_linear(&self) -> bool {
        self.inner().is_linear()
    }
    fn signals(&self) -> Option<&Smooth> {
        self.inner().signals()
    }
}

/// A best fit as a learner gives it that misbehaves so.
fn spoilt(how: Misbehaviour, mut fitted: Vec<f64>) -> Vec<f64> {
    if let Some(x) = how.model() {
        fitted.fill(x);
    }
    fitted.extend((how == Misbehaviour::OtherLength).then_some(1.0));
    fitted
}

/// One client's learner that misbehaves.
struct Spoilt {
    sound: Box<dyn Learner>,
    how: Misbehaviour,
}

impl Spoilt {
    fn fails(&self) -> Result<(), Failure> {
        self.how.failure().map_or(Ok(()), Err)
    }

    fn number(&self, sound: f64) -> Result<f64, Failure> {
        self.fails()?;
        Ok(self.how.slope().unwrap_or(sound))
    }

    fn fill(&self, out: &mut [f64], with: Option<f64>) -> Result<(), Failure> {
        if let Some(x) = with {
            out.fill(x);
        }
        self.fails()
    }
}

impl Learner for Spoilt {
    fn rows(&self) -> usize {
        self.sound.rows()
    }
    fn dimension(&self) -> usize {
        self.sound.dimension()
    }
    fn loss(&self, w: &[f64], buffers: &mut Buffers) -> Result<f64, Failure> {
        self.number(self.sound.loss(w, buffers)?)
    }
    fn smooth(&self, w: &[f64], buffers: &mut Buffers) -> Result<f64, Failure> {
        self.number(self.sound.smooth(w, buffers)?)
    }
    fn kinks(&self, w: &[f64]) -> f64 {
        self.sound.kinks(w)
    }
    fn value(&self, w: &[f64], buffers: &mut Buffers) -> Result<f64, Failure> {
        self.number(self.sound.value(w, buffers)?)
    }
    fn values(&self, models: &[f64], out: &mut Vec<f64>, buffers: &mut Buffers) -> Result<(), Failure> {
        self.sound.values(models, out, buffers)?;
        self.fill(out, self.how.slope())
    }
    fn gradient(
        &self,
        w: &[f64],
        factor: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        self.sound.gradient(w, factor, out, buffers)?;
        self.fill(out, self.how.slope())
    }
    fn gradients(
        &self,
        models: &[f64],
        factor: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        self.sound.gradients(models, factor, out, buffers)?;
        self.fill(out, self.how.slope())
    }
    fn batch_gradient(
        &self,
        rows: &[u32],
        w: &mut [f64],
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<f64, Failure> {
        let value = self.sound.batch_gradient(rows, w, out, buffers)?;
        self.fill(out, self.how.slope())?;
        self.number(value)
    }
    fn record_gradient(
        &self,
        row: usize,
        w: &[f64],
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        self.sound.record_gradient(row, w, out, buffers)?;
        self.fill(out, self.how.slope())
    }
    fn has_kinks(&self) -> bool {
        self.sound.has_kinks()
    }
    fn shrink(&self, w: &mut [f64], t: f64) {
        self.sound.shrink(w, t);
    }
    fn descend(
        &self,
        w: &mut [f64],
        descent: &Descent,
        pull: Option<Pull<'_>>,
        shuffle: &mut dyn FnMut(&mut [u32]),
        buffers: &mut Buffers,
    ) -> Result<f64, Failure> {
        let value = self.sound.descend(w, descent, pull, shuffle, buffers)?;
        self.fill(w, self.how.model())?;
        self.number(value)
    }
    fn prox(
        &self,
        centre: &[f64],
        weight: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<Reached, Failure> {
        let reached = self.sound.prox(centre, weight, out, buffers)?;
        self.fill(out, self.how.model())?;
        Ok(reached)
    }
    fn minimise(&self, buffers: &mut Buffers) -> Result<Vec<f64>, Failure> {
        let fitted = self.sound.minimise(buffers)?;
        self.fails()?;
        Ok(spoilt(self.how, fitted))
    }
}
