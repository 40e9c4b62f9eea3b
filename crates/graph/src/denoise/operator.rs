//! What is done to a signal: a matrix with one row and one column per client, in the form that suits it.

use super::DenoiseError;
use super::gradients::Gradients;
use super::lanes::{self, Work};
use super::polynomial::Polynomial;
use super::variation::Variation;
use crate::Sparse;
use fedkin_numeric::{axpy, scale};

/// Columns of a panel of the dense form, and rows that share its passes: sums stay in registers.
const PANEL: usize = 8;
const SHARED: usize = 4;

/// A denoiser for one graph at one strength.
#[derive(Debug, Clone)]
pub struct Operator {
    clients: usize,
    form: Form,
    /// Rows of the signal are multiplied by these first.
    factors: Option<Vec<f64>>,
    /// Every value is brought between the least and the largest of its column.
    between: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Form {
    Identity,
    /// Row by row.
    Dense(Vec<f64>),
    /// A few weights per row.
    Lists(Lists),
    Means(Means),
    Polynomial(Polynomial),
    Gradients(Gradients),
    Variation(Variation),
}

/// Rows with few entries each: `(client, weight)`.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    pub(super) starts: Vec<usize>,
    pub(super) entries: Vec<(u32, f64)>,
}

/// The weighted mean of each component.
#[derive(Debug, Clone)]
pub(super) struct Means {
    components: Vec<u32>,
    /// Weights, which sum to one in each component.
    weights: Vec<f64>,
}

impl Means {
    pub(super) fn new(graph: &Sparse, mass: &[f64]) -> Self {
        let components = graph.components();
        let mut sums = vec![0.0; components.iter().max().map_or(0, |&last| last as usize + 1)];
        for (&component, mass) in components.iter().zip(mass) {
            sums[component as usize] += mass;
        }
        let weights =
            components.iter().zip(mass).map(|(&component, mass)| mass / sums[component as usize]).collect();
        Self { components, weights }
    }

    fn apply(&self, rows: &[&[f64]], out: &mut [&mut [f64]], factors: Option<&[f64]>) {
        let columns = rows.first().map_or(0, |row| row.len());
        let count = self.components.iter().max().map_or(0, |&last| last as usize + 1);
        let mut means = vec![0.0; count * columns];
        for (k, (row, &component)) in rows.iter().zip(&self.components).enumerate() {
            let mean = &mut means[component as usize * columns..][..columns];
            axpy(self.weights[k] * factors.map_or(1.0, |factors| factors[k]), row, mean);
        }
        for (out, &component) in out.iter_mut().zip(&self.components) {
            out.copy_from_slice(&means[component as usize * columns..][..columns]);
        }
    }
}

impl Operator {
    /// The operator of a matrix with one row and one column per client, row by row: `psi_k = sum over j of m_kj omega_j`.
    pub fn of_matrix(clients: usize, matrix: Vec<f64>) -> Result<Self, DenoiseError> {
        if clients == 0 || matrix.len() != clients * clients || matrix.iter().any(|x| !x.is_finite()) {
            return Err(DenoiseError::Matrix { clients, numbers: matrix.len() });
        }
        Ok(Self::new(clients, Form::Dense(matrix), None))
    }

    /// The same with few entries in a row: `(client, weight)` for each.
    pub fn of_lists(rows: &[Vec<(u32, f64)>]) -> Result<Self, DenoiseError> {
        let clients = rows.len();
        let strange = |(other, weight): &(u32, f64)| *other as usize >= clients || !weight.is_finite();
        if clients == 0 || rows.iter().flatten().any(strange) {
            return Err(DenoiseError::Matrix { clients, numbers: rows.iter().map(Vec::len).sum() });
        }
        let mut lists = Lists { starts: vec![0], entries: Vec::new() };
        for row in rows {
            lists.entries.extend_from_slice(row);
            lists.starts.push(lists.entries.len());
        }
        Ok(Self::new(clients, Form::Lists(lists), None))
    }

    /// The operator that leaves signals as they are.
    pub fn unchanged(clients: usize) -> Self {
        Self::new(clients, Form::Identity, None)
    }

    pub(super) fn new(clients: usize, form: Form, factors: Option<Vec<f64>>) -> Self {
        Self { clients, form, factors, between: false }
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.clients
    }

    /// Whether signals come back as they are.
    pub fn identity(&self) -> bool {
        matches!(self.form, Form::Identity) && self.factors.is_none()
    }

    /// How it is computed, in a word: `exact`, `chebyshev`, `cg`, or what it is.
    pub fn way(&self) -> &'static str {
        match &self.form {
            Form::Identity => "identity",
            Form::Dense(_) => "exact",
            Form::Lists(_) => "lists",
            Form::Means(_) => "means",
            Form::Polynomial(_) => "chebyshev",
            Form::Gradients(_) => "cg",
            Form::Variation(_) => "dual gradients",
        }
    }

    /// How many products with the Laplacian a signal needs at most; zero where there are none.
    pub fn steps(&self) -> usize {
        match &self.form {
            Form::Polynomial(polynomial) => polynomial.steps(),
            Form::Gradients(gradients) => gradients.most(),
            _ => 0,
        }
    }

    /// Denoises a signal of one row per client: `rows` in, `out` over it. All rows have the same length: those of
    /// whole models, or one block of their columns. A column's result does not depend on the block it stands in.
    pub fn apply(&self, rows: &[&[f64]], out: &mut [&mut [f64]]) -> Result<(), DenoiseError> {
        if rows.len() != self.clients || out.len() != self.clients {
            let found = if rows.len() == self.clients { out.len() } else { rows.len() };
            return Err(DenoiseError::Rows { clients: self.clients, rows: found });
        }
        let columns = rows[0].len();
        let lengths = rows.iter().map(|row| row.len()).chain(out.iter().map(|row| row.len()));
        if let Some((at, length)) = lengths.enumerate().find(|&(_, length)| length != columns) {
            return Err(DenoiseError::Columns { row: at % self.clients, columns, found: length });
        }
        let factors = self.factors.as_deref();
        match &self.form {
            Form::Identity => {
                for (k, (row, out)) in rows.iter().zip(&mut *out).enumerate() {
                    out.copy_from_slice(row);
                    if let Some(factors) = factors {
                        scale(factors[k], out);
                    }
                }
            }
            Form::Dense(matrix) => product(matrix, rows, out, factors),
            Form::Lists(lists) => {
                for (k, out) in out.iter_mut().enumerate() {
                    out.fill(0.0);
                    for &(other, weight) in &lists.entries[lists.starts[k]..lists.starts[k + 1]] {
                        axpy(weight, rows[other as usize], out);
                    }
                }
            }
            Form::Means(means) => means.apply(rows, out, factors),
            Form::Polynomial(work) => self.in_lanes(work, rows, out)?,
            Form::Gradients(work) => self.in_lanes(work, rows, out)?,
            Form::Variation(work) => self.in_lanes(work, rows, out)?,
        }
        if self.between {
            bring_between(rows, out);
        }
        Ok(())
    }

    fn in_lanes(
        &self,
        work: &impl Work,
        rows: &[&[f64]],
        out: &mut [&mut [f64]],
    ) -> Result<(), DenoiseError> {
        lanes::each(work, rows, out, self.factors.as_deref())
    }

    /// Denoises a matrix of one row per client, rows behind each other.
    pub fn apply_matrix(&self, signal: &[f64]) -> Result<Vec<f64>, DenoiseError> {
        if !signal.len().is_multiple_of(self.clients) {
            return Err(DenoiseError::Matrix { clients: self.clients, numbers: signal.len() });
        }
        let columns = signal.len() / self.clients;
        let mut result = vec![0.0; signal.len()];
        if columns > 0 {
            let rows: Vec<&[f64]> = signal.chunks_exact(columns).collect();
            let mut out: Vec<&mut [f64]> = result.chunks_exact_mut(columns).collect();
            self.apply(&rows, &mut out)?;
        }
        Ok(result)
    }

    /// The same as an average with weights of zero or more that sum to one, for values that must stay between those
    /// of the clients (variances must not come out negative). A matrix loses its negative entries and its rows are
    /// brought back to sum one; where there is no matrix, values are brought between the least and the largest of
    /// their column, which is an average too.
    #[must_use]
    pub fn averaging(&self) -> Self {
        let form = match &self.form {
            Form::Dense(matrix) => Form::Dense(positive(matrix, self.clients, self.factors.as_deref())),
            // Without their factors these are averages already.
            form => form.clone(),
        };
        let between = matches!(form, Form::Polynomial(_) | Form::Gradients(_) | Form::Variation(_));
        Self { clients: self.clients, form, factors: None, between }
    }

    /// The matrix, row by row, where there is one: of an [`Operator::averaging`] its positive weights.
    pub fn matrix(&self) -> Option<Vec<f64>> {
        let clients = self.clients;
        let mut matrix = vec![0.0; clients.checked_mul(clients)?];
        match &self.form {
            Form::Dense(entries) => matrix.copy_from_slice(entries),
            Form::Identity => (0..clients).for_each(|k| matrix[k * clients + k] = 1.0),
            Form::Lists(lists) => {
                for k in 0..clients {
                    for &(other, weight) in &lists.entries[lists.starts[k]..lists.starts[k + 1]] {
                        matrix[k * clients + other as usize] = weight;
                    }
                }
            }
            Form::Means(means) => {
                for (i, own) in means.components.iter().enumerate() {
                    for (j, other) in means.components.iter().enumerate() {
                        if own == other {
                            matrix[i * clients + j] = means.weights[j];
                        }
                    }
                }
            }
            Form::Polynomial(_) | Form::Gradients(_) | Form::Variation(_) => return None,
        }
        if let Some(factors) = &self.factors {
            for row in matrix.chunks_exact_mut(clients) {
                row.iter_mut().zip(factors).for_each(|(entry, factor)| *entry *= factor);
            }
        }
        Some(matrix)
    }
}

/// Entries of at least zero in rows of sum one. A row that has no positive entry becomes the client itself.
fn positive(matrix: &[f64], clients: usize, factors: Option<&[f64]>) -> Vec<f64> {
    let mut result = Vec::with_capacity(matrix.len());
    for (k, row) in matrix.chunks_exact(clients).enumerate() {
        let start = result.len();
        result.extend(
            row.iter()
                .enumerate()
                .map(|(j, entry)| entry.max(0.0) * factors.map_or(1.0, |factors| factors[j])),
        );
        let row = &mut result[start..];
        let sum: f64 = row.iter().sum();
        if sum > 0.0 {
            for entry in row {
                *entry /= sum;
            }
        } else {
            row[k] = 1.0;
        }
    }
    result
}

fn bring_between(rows: &[&[f64]], out: &mut [&mut [f64]]) {
    let columns = rows[0].len();
    let (mut least, mut most) = (vec![f64::INFINITY; columns], vec![f64::NEG_INFINITY; columns]);
    for row in rows {
        for ((least, most), &value) in least.iter_mut().zip(&mut most).zip(*row) {
            (*least, *most) = (least.min(value), most.max(value));
        }
    }
    for out in out {
        for ((value, least), most) in out.iter_mut().zip(&least).zip(&most) {
            // Not `clamp`: it panics where a signal is not a number.
            *value = value.max(*least).min(*most);
        }
    }
}

/// `out = matrix rows`, panel by panel of columns; every entry is one sum over `rows` in their order. The matrix has a
/// row for each of `out` and a column for each of `rows`, of which there is at least one.
pub(super) fn product(matrix: &[f64], rows: &[&[f64]], out: &mut [&mut [f64]], factors: Option<&[f64]>) {
    let clients = rows.len();
    let columns = rows[0].len();
    let mut panel = vec![[0.0; PANEL]; clients];
    let mut at = 0;
    while at < columns {
        let width = PANEL.min(columns - at);
        for (k, (packed, row)) in panel.iter_mut().zip(rows).enumerate() {
            let factor = factors.map_or(1.0, |factors| factors[k]);
            packed[..width].copy_from_slice(&row[at..at + width]);
            scale(factor, packed);
        }
        for (some, out) in matrix.chunks(SHARED * clients).zip(out.chunks_mut(SHARED)) {
            if out.len() == SHARED {
                let parts: [&[f64]; SHARED] = std::array::from_fn(|i| &some[i * clients..(i + 1) * clients]);
                let sums = shared(parts, &panel);
                for (out, sum) in out.iter_mut().zip(&sums) {
                    out[at..at + width].copy_from_slice(&sum[..width]);
                }
            } else {
                for (part, out) in some.chunks_exact(clients).zip(out) {
                    let [sum] = shared([part], &panel);
                    out[at..at + width].copy_from_slice(&sum[..width]);
                }
            }
        }
        at += width;
    }
}

/// `N` rows of the matrix times the panel.
fn shared<const N: usize>(parts: [&[f64]; N], panel: &[[f64; PANEL]]) -> [[f64; PANEL]; N] {
    let parts = parts.map(|part| &part[..panel.len()]);
    let mut sums = [[0.0; PANEL]; N];
    for (k, values) in panel.iter().enumerate() {
        for i in 0..N {
            let weight = parts[i][k];
            for lane in 0..PANEL {
                sums[i][lane] += weight * values[lane];
            }
        }
    }
    sums
}
