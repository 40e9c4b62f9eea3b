//! Neural nets: sequences of layers over one flat vector of 32-bit parameters, trained by mini-batches.
//!
//! ```text
//! conv        z[c,y,x] = b[c] + sum over i,u,v of w[c,i,u,v] a[i, s y + u - p, s x + v - p]
//! dense       z[c]     = b[c] + sum over i of w[c,i] a[i]
//! batch norm  z        = scale (a - mean) / sqrt(variance + 1e-5) + shift, per channel over batch and places
//! group norm  the same, per record and group of channels over places
//! max pool, tanh, relu
//! cross-entropy  mean over the batch of ln sum exp z - z[y];   squared  mean over the batch of |z - y|^2
//! ```
//!
//! The parameters lie in the order of the layers, and in a layer as PyTorch has them: weights by output, input, row and
//! column, then bias; scale, shift, running mean, running variance. The running statistics are coordinates of the
//! vector without a gradient.
//!
//! | file | what |
//! |---|---|
//! | `layer` | layers in words |
//! | `net` | shapes, parameters, buffers: what is fixed before the first number |
//! | `bench` | the scratch of one thread |
//! | `pass` | forward and backward through all layers |
//! | `lanes` | sixteen records side by side, and the kernels on them |
//! | `conv`, `dense`, `norm`, `pool`, `activation`, `loss` | the layers |
//! | `train` | epochs of gradient steps |
//!
//! A step allocates nothing and uses one thread. The order of every sum is written in the source and every product is
//! rounded in one exact way, so bits depend neither on the processor nor on the size of the scratch. That, and the
//! layout, is why there is no library for matrix products beneath: one would block its sums by the size of the caches.

mod activation;
mod conv;
mod dense;
mod lanes;
mod layer;
mod loss;
mod net;
mod norm;
mod pass;
mod pool;
mod scratch;
mod train;

#[cfg(test)]
mod tests;

pub use layer::Layer;
pub use net::{Goal, Net, Part, Role};
pub use scratch::NetScratch;
pub use train::{Descent, Diverged, Narrow, Pull, train};
