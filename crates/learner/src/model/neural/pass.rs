//! Forward and backward through all layers.

use super::lanes::{self, LANES, Lanes, Rows};
use super::net::{Net, Step, Work};
use super::scratch::{ForwardState, NetScratch};
use super::{activation, dense, norm};

/// Two different buffers, the first to read and the second to write.
fn two(values: &mut [Vec<Lanes>], from: usize, to: usize) -> (&[Lanes], &mut [Lanes]) {
    let (low, high) = values.split_at_mut(to);
    (&low[from], &mut high[0])
}

/// Why a record has no gradient of its own.
const MIXES: &str =
    "batch norm mixes the records of a batch, so a record has no gradient of its own: use group-norm";

impl Net {
    /// The mean loss of a batch in training mode; its gradient goes into `out` (zero at running statistics), and the
    /// running statistics in `w` move. `x` holds records by rows, `y` their targets; both are as long as they say, and
    /// the batch has at least [`Self::least_batch`] records.
    pub fn gradient(
        &self,
        bench: &mut NetScratch,
        w: &mut [f32],
        x: &[f32],
        y: &[f32],
        out: &mut [f32],
    ) -> f32 {
        self.gradient_of(bench, w, self.rows(x), y, out)
    }

    fn rows<'a>(&self, x: &'a [f32]) -> Rows<'a> {
        Rows { features: x, columns: self.features(), order: None }
    }

    /// [`Self::gradient`] on some rows of a table.
    pub(super) fn gradient_of(
        &self,
        bench: &mut NetScratch,
        w: &mut [f32],
        rows: Rows<'_>,
        y: &[f32],
        out: &mut [f32],
    ) -> f32 {
        let loss = self.slope(bench, w, rows, y, out);
        for (step, kept) in self.steps.iter().zip(&bench.kept) {
            if let (Work::BatchNorm(extent), ForwardState::Moments(moments)) = (&step.work, kept) {
                let [_, _, mean, variance] = &step.parts;
                let (before, after) = w.split_at_mut(variance.start);
                let (mean, variance) = (&mut before[mean.clone()], &mut after[..variance.len()]);
                norm::move_running(moments, rows.count() * extent.places, mean, variance);
            }
        }
        loss
    }

    /// The loss of one record and its gradient, for methods that bound what one record can do. A net with batch norm is
    /// refused: there the loss of a record depends on the others.
    pub fn record_gradient(
        &self,
        bench: &mut NetScratch,
        w: &[f32],
        x: &[f32],
        y: &[f32],
        out: &mut [f32],
    ) -> Result<f32, String> {
        if self.batch_norm() {
            return Err(MIXES.into());
        }
        Ok(self.slope(bench, w, self.rows(x), y, out))
    }

    /// The outputs (logits) of records by rows in evaluation mode, any number of them.
    pub fn predict(&self, bench: &mut NetScratch, w: &[f32], x: &[f32], out: &mut [f32]) {
        bench.fit(self, 1);
        let (features, most) = (self.features(), bench.batch());
        let parts = x.chunks(features * most).zip(out.chunks_mut(self.outputs() * most));
        for (x, out) in parts {
            let rows = self.rows(x);
            self.forward(bench, w, rows, false);
            if let Some(last) = self.steps.last() {
                let length = lanes::blocks(rows.count()) * self.outputs();
                lanes::unload(&bench.values[last.to][..length], self.outputs(), out);
            }
        }
    }

    fn slope(&self, bench: &mut NetScratch, w: &[f32], rows: Rows<'_>, y: &[f32], out: &mut [f32]) -> f32 {
        let records = rows.count();
        bench.fit(self, records);
        self.forward(bench, w, rows, true);
        let share = 1.0 / records as f64;
        let loss = self.open(bench, y, records, share);
        self.all_back(bench, w, records, out, None);
        (share * loss) as f32
    }

    /// The sum of the gradients of the records, each scaled down to a norm of at most `bound`, for DP-SGD; the norms before
    /// that go into `norms`, and the mean loss comes back. No gradient of a single record is stored: its norm is found
    /// layer by layer, and the way back is gone a second time with scaled slopes at the output. Norms are rounded as all
    /// 32-bit numbers are, so a scaled gradient may be longer than `bound` by one part in 10^5; who needs a guarantee to
    /// the last bit clips the vectors of [`Self::record_gradient`]. Batch norm is refused as there.
    #[allow(clippy::too_many_arguments)] // One batch: its records, its targets, and two results.
    pub fn clipped_gradient(
        &self,
        bench: &mut NetScratch,
        w: &[f32],
        x: &[f32],
        y: &[f32],
        bound: f64,
        out: &mut [f32],
        norms: &mut [f32],
    ) -> Result<f32, String> {
        if self.batch_norm() {
            return Err(MIXES.into());
        }
        let rows = self.rows(x);
        let records = rows.count();
        bench.fit(self, records);
        self.forward(bench, w, rows, true);
        self.open(bench, y, records, 1.0);
        let mut squares = std::mem::take(&mut bench.squares);
        squares.fill(Lanes::ZERO);
        self.all_back(bench, w, records, out, Some(&mut squares));
        let loss = self.open(bench, y, records, 1.0);
        for (record, norm) in norms[..records].iter_mut().enumerate() {
            let (block, lane) = (record / LANES, record % LANES);
            *norm = squares[block].0[lane].sqrt();
            let factor = if f64::from(*norm) > bound { (bound / f64::from(*norm)) as f32 } else { 1.0 };
            for g in &mut bench.slopes[0][block * self.outputs()..(block + 1) * self.outputs()] {
                g.0[lane] *= factor;
            }
        }
        bench.squares = squares;
        self.all_back(bench, w, records, out, None);
        Ok((loss / records as f64) as f32)
    }

    /// The slopes at the output, each with this share; gives the sum of the losses.
    fn open(&self, bench: &mut NetScratch, y: &[f32], records: usize, share: f64) -> f64 {
        let Some(last) = self.steps.last() else { return f64::NAN };
        let length = lanes::blocks(records) * self.outputs();
        let (z, g) = (&bench.values[last.to][..length], &mut bench.slopes[0][..length]);
        self.goal().slope(z, y, (records, self.outputs()), share, g)
    }

    /// From the slopes at the output to the gradient; or only to the squared norms of the records' gradients, by block.
    fn all_back(
        &self,
        bench: &mut NetScratch,
        w: &[f32],
        records: usize,
        out: &mut [f32],
        mut squares: Option<&mut [Lanes]>,
    ) {
        // The gradients of a dense layer are written, all others are added to.
        for step in self.steps.iter().filter(|step| !matches!(step.work, Work::Dense(_))) {
            for range in &step.parts {
                out[range.clone()].fill(0.0);
            }
        }
        for (at, step) in self.steps.iter().enumerate().rev() {
            self.back(bench, w, (at, step), records, out, squares.as_deref_mut());
        }
    }

    fn forward(&self, bench: &mut NetScratch, w: &[f32], rows: Rows<'_>, training: bool) {
        let records = rows.count();
        let blocks = lanes::blocks(records);
        rows.load(&mut bench.values[0][..blocks * self.features()]);
        let NetScratch { values, kept, pack, .. } = bench;
        for (step, kept) in self.steps.iter().zip(kept) {
            let (from, to) = (self.buffers[step.from], self.buffers[step.to]);
            let [first, second, mean, variance] = step.parts.clone().map(|range| &w[range]);
            if step.from == step.to {
                let all = &mut values[step.to][..blocks * to];
                match step.work {
                    Work::Tanh => activation::tanh_forward(all),
                    _ => activation::relu_forward(all),
                }
                continue;
            }
            if let Work::Conv(conv, Some(padded)) = &step.work {
                let (x, padded) = two(values, step.from, *padded);
                let each = conv.padded.iter().product();
                for (x, padded) in x.chunks_exact(from).zip(padded.chunks_exact_mut(each)).take(blocks) {
                    conv.pad(x, padded);
                }
            }
            let source = match step.work {
                Work::Conv(_, Some(padded)) => padded,
                _ => step.from,
            };
            let (x, out) = two(values, source, step.to);
            let (x, out) = (&x[..blocks * self.buffers[source]], &mut out[..blocks * to]);
            match (&step.work, kept) {
                (Work::Conv(conv, _), _) => {
                    conv.pack_forward(first, pack);
                    for (x, out) in x.chunks_exact(self.buffers[source]).zip(out.chunks_exact_mut(to)) {
                        conv.forward(pack, second, x, out);
                    }
                }
                (Work::Dense(inputs), _) => dense::forward(first, second, *inputs, x, out),
                (Work::BatchNorm(extent), ForwardState::Moments(moments)) => {
                    if training {
                        norm::batch_moments(x, *extent, records, moments);
                    } else {
                        norm::running_moments(mean, variance, moments);
                    }
                    norm::batch_forward(moments, first, second, extent.places, x, out);
                }
                (Work::GroupNorm(groups, extent), ForwardState::Groups(kept)) => {
                    norm::group_forward(*groups, *extent, (first, second), x, (out, kept));
                }
                (Work::MaxPool(pool), _) => {
                    for (x, out) in x.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
                        pool.forward(x, out);
                    }
                }
                (Work::Tanh, _) => {
                    out.copy_from_slice(x);
                    activation::tanh_forward(out);
                }
                _ => {
                    out.copy_from_slice(x);
                    activation::relu_forward(out);
                }
            }
        }
    }

    /// One layer: the gradient at its output is in `slopes[0]`, and so is the one at its input afterwards.
    fn back(
        &self,
        bench: &mut NetScratch,
        w: &[f32],
        (at, step): (usize, &Step),
        records: usize,
        out: &mut [f32],
        squares: Option<&mut [Lanes]>,
    ) {
        let blocks = lanes::blocks(records);
        let (from, to) = (self.buffers[step.from], self.buffers[step.to]);
        let NetScratch { values, kept, slopes: [g, next], pack, panel, .. } = bench;
        let (g_all, next_all) = (&mut g[..blocks * to], &mut next[..blocks * from]);
        let [first, second, ..] = step.parts.clone();
        let weights = &w[first.clone()];
        let (before, after) = out.split_at_mut(second.start);
        let outs = (&mut before[first.clone()], &mut after[..second.len()]);
        match (&step.work, &mut kept[at]) {
            (Work::Conv(conv, padded), _) => {
                let source = padded.unwrap_or(step.from);
                let x = values[source].chunks_exact(self.buffers[source]);
                let each = x.zip(g_all.chunks_exact(to));
                if let Some(squares) = squares {
                    each.zip(squares).for_each(|((x, g), out)| conv.squares(x, g, out));
                } else {
                    each.for_each(|(x, g)| conv.slope(x, g, outs.0, outs.1));
                }
                if step.inner {
                    conv.pack_back(weights, pack);
                    for (g, next) in g_all.chunks_exact(to).zip(next_all.chunks_exact_mut(from)) {
                        conv.back(pack, g, next);
                    }
                }
            }
            (Work::Dense(inputs), _) => {
                let (x, panel) = (&values[step.from][..blocks * from], &mut panel[..blocks * LANES]);
                if let Some(squares) = squares {
                    let each = x.chunks_exact(from).zip(g_all.chunks_exact(to)).zip(squares);
                    each.for_each(|((x, g), out)| dense::squares(x, g, out));
                } else {
                    dense::slope(x, g_all, outs, panel);
                }
                if step.inner {
                    dense::back(weights, *inputs, g_all, next_all);
                }
            }
            (Work::BatchNorm(extent), ForwardState::Moments(moments)) => {
                let x = &values[step.from][..blocks * from];
                norm::batch_back(moments, weights, (*extent, records), x, g_all, outs);
                lanes::clear_rest(g_all, from, records);
            }
            (Work::GroupNorm(groups, extent), ForwardState::Groups(kept)) => {
                let x = &values[step.from][..blocks * from];
                norm::group_back(*groups, *extent, weights, (x, kept), g_all, outs, squares);
            }
            (Work::MaxPool(pool), _) if step.inner => {
                let before = values[step.from].chunks_exact(from).zip(values[step.to].chunks_exact(to));
                let slopes = g_all.chunks_exact(to).zip(next_all.chunks_exact_mut(from));
                for ((x, y), (g, next)) in before.zip(slopes) {
                    pool.back(x, y, g, next);
                }
            }
            (Work::Tanh, _) if step.inner => activation::tanh_back(&values[step.to], g_all),
            (Work::Relu, _) if step.inner => activation::relu_back(&values[step.to], g_all),
            _ => {}
        }
        if matches!(step.work, Work::Conv(..) | Work::Dense(_) | Work::MaxPool(_)) {
            std::mem::swap(g, next);
        }
    }
}
