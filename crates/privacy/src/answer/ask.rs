//! What a client is asked.

use fedkin_numeric::codec::{Codec, Damaged, Digest, Reader, Sink};

/// What a step is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Which of the method's kinds of step.
    pub kind: u16,
    /// Which of several such parts of a run: a restart, a phase; 0 for most.
    pub part: u32,
}

impl Label {
    /// A label of this kind.
    pub const fn new(kind: u16) -> Self {
        Self { kind, part: 0 }
    }

    /// The same kind in another part of the run.
    #[must_use]
    pub const fn part(self, part: u32) -> Self {
        Self { kind: self.kind, part }
    }
}

impl Codec for Label {
    fn schema() -> String {
        "label".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        self.kind.put(sink);
        self.part.put(sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self { kind: u16::get(reader)?, part: u32::get(reader)? })
    }
}

/// The label of methods with one kind of step.
pub const ROUND: Label = Label::new(0);
/// The label under which every client gets its served model; no method compares with it.
pub const DELIVER: Label = Label::new(u16::MAX);

/// What a client is asked: a broadcast `C` and the client's own part `D`. All of it is known to the server. Only the
/// machines make one: a method that made its own could put private data where a released value is computed from.
pub struct Ask<'a, C, D> {
    step: u32,
    label: Label,
    common: &'a C,
    down: &'a D,
}

// By hand: references are copied, whatever they refer to.
impl<C, D> Clone for Ask<'_, C, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, D> Copy for Ask<'_, C, D> {}

impl<'a, C, D> Ask<'a, C, D> {
    pub(crate) fn new(step: u32, label: Label, common: &'a C, down: &'a D) -> Self {
        Self { step, label, common, down }
    }

    /// The step, from 1.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// What the step is about.
    pub fn label(&self) -> Label {
        self.label
    }

    /// What every asked client of the server got.
    pub fn common(&self) -> &'a C {
        self.common
    }

    /// What this client got.
    pub fn down(&self) -> &'a D {
        self.down
    }
}

impl<C: Codec, D: Codec> Ask<'_, C, D> {
    pub(super) fn feed(&self, digest: &mut Digest) {
        self.step.put(digest);
        self.label.put(digest);
        self.common.put(digest);
        self.down.put(digest);
    }
}
