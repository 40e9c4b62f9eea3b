//! The filters that are functions of the Laplacian: one response `h` over its eigenvalues.

use super::gradients::Gradients;
use super::operator::{Form, Means, Operator};
use super::polynomial::Polynomial;
use super::{Base, DenoiseError, Denoiser, EXACT, Prepared, Strength, Way, check};
use fedkin_numeric::exp;

/// What the strengths mean.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    /// `1 / (1 + factor (b1 l + b2 l^2))`.
    Soft { factor: f64 },
    /// `exp(-b1 l)`.
    Heat,
    /// 1 for the least eigenvalues, else 0.
    Hard,
}

/// `h` at one strength.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Response {
    /// `1 / (1 + a l + b l^2)`.
    Quadratic { linear: f64, square: f64 },
    /// `exp(-t l)`.
    Exponential { time: f64 },
}

impl Response {
    /// `h(l)`; one at zero also where a strength is infinite.
    pub(super) fn at(self, value: f64) -> f64 {
        if value == 0.0 {
            return 1.0;
        }
        match self {
            Self::Quadratic { linear, square } => {
                // A strength of zero has no term, whatever the eigenvalue.
                1.0 / (1.0 + linear * value + if square > 0.0 { square * value * value } else { 0.0 })
            }
            Self::Exponential { time } => exp(-time * value),
        }
    }

    fn nothing(self) -> bool {
        matches!(self, Self::Quadratic { linear, square } if linear + square == 0.0)
            || self == Self::Exponential { time: 0.0 }
    }

    fn endless(self) -> bool {
        match self {
            Self::Quadratic { linear, square } => (linear + square).is_infinite(),
            Self::Exponential { time } => time.is_infinite(),
        }
    }
}

/// A filter that is a function of the Laplacian.
#[derive(Debug)]
pub(super) struct Spectral {
    shape: Shape,
    sized: bool,
    /// Models are multiplied by the shares of their clients first, as (13) has it.
    shares: bool,
}

/// The default: weighted by client size.
pub(super) static SOUND: Spectral =
    Spectral { shape: Shape::Soft { factor: 2.0 }, sized: true, shares: false };
/// (10).
pub(super) static PAPER_10: Spectral =
    Spectral { shape: Shape::Soft { factor: 2.0 }, sized: false, shares: false };
/// (12).
pub(super) static PAPER_12: Spectral =
    Spectral { shape: Shape::Soft { factor: 1.0 }, sized: false, shares: false };
/// (13) as printed.
pub(super) static PAPER_13: Spectral =
    Spectral { shape: Shape::Soft { factor: 2.0 }, sized: false, shares: true };
/// (16) in the size-weighted basis.
pub(super) static HARD: Spectral = Spectral { shape: Shape::Hard, sized: true, shares: false };
/// (16).
pub(super) static PAPER_16: Spectral = Spectral { shape: Shape::Hard, sized: false, shares: false };
/// The heat kernel in the size-weighted basis.
pub(super) static HEAT: Spectral = Spectral { shape: Shape::Heat, sized: true, shares: false };

impl Denoiser for Spectral {
    fn sized(&self) -> bool {
        self.sized
    }

    fn base(&self, clients: usize, way: Way) -> Base {
        let exact = way == Way::Exact || (way == Way::Auto && clients <= EXACT);
        match (exact, self.shape) {
            (true, _) => Base::Spectrum,
            // Nothing but eigenvectors serves: the strength says whether they are needed.
            (false, Shape::Hard) => Base::Edges,
            (false, _) => Base::Products,
        }
    }

    fn operator(&self, on: &Prepared, strength: &Strength) -> Result<Operator, DenoiseError> {
        let form = match self.shape {
            Shape::Hard => hard(on, strength.tau)?,
            Shape::Soft { factor } => {
                let linear = factor * check("beta1", strength.beta1)?;
                soft(on, Response::Quadratic { linear, square: factor * check("beta2", strength.beta2)? })?
            }
            Shape::Heat => soft(on, Response::Exponential { time: check("beta1", strength.beta1)? })?,
        };
        Ok(Operator::new(on.clients(), form, self.shares.then(|| on.shares.clone())))
    }
}

fn hard(on: &Prepared, tau: usize) -> Result<Form, DenoiseError> {
    let clients = on.clients();
    if tau == 0 || tau > clients {
        return Err(DenoiseError::Tau(tau, clients));
    }
    if tau == clients {
        return Ok(Form::Identity);
    }
    let Some(spectrum) = &on.spectrum else {
        return Err(DenoiseError::Way {
            name: on.row.name,
            clients,
            way: "a sparse method",
            instead: "choose the method exact (its memory and time grow with the square and the cube of the clients), \
                      or a soft filter",
        });
    };
    let kept = spectrum.kept(tau);
    if kept == clients {
        return Ok(Form::Identity);
    }
    Ok(Form::Dense(spectrum.matrix(|at, _| if at < kept { 1.0 } else { 0.0 })))
}

fn soft(on: &Prepared, response: Response) -> Result<Form, DenoiseError> {
    if response.nothing() {
        return Ok(Form::Identity);
    }
    if response.endless() {
        return Ok(Form::Means(Means::new(&on.graph, &on.mass)));
    }
    if let Some(spectrum) = &on.spectrum {
        return Ok(Form::Dense(spectrum.matrix(|_, value| response.at(value))));
    }
    let Some(flow) = &on.flow else { return Err(DenoiseError::Weights) };
    if flow.reach == 0.0 {
        // No edge at all.
        return Ok(Form::Identity);
    }
    let refused = |way: &'static str, instead: &'static str| DenoiseError::Way {
        name: on.row.name,
        clients: on.clients(),
        way,
        instead,
    };
    let solve = |response: Response| match response {
        Response::Quadratic { linear, square } => Ok(Gradients::new(flow.clone(), linear, square)),
        Response::Exponential { .. } => {
            Err(refused("cg", "it is no linear system; choose the method chebyshev or exact"))
        }
    };
    if on.way == Way::Gradients {
        return Ok(Form::Gradients(solve(response)?));
    }
    let polynomial = Polynomial::new(flow.clone(), response);
    let form = match (polynomial, response) {
        (Some(polynomial), Response::Quadratic { linear, square }) if on.way == Way::Auto => {
            // Steps of both are known beforehand, and a step costs about the same.
            if polynomial.steps() <= Gradients::expected(flow.reach, linear, square) {
                Form::Polynomial(polynomial)
            } else {
                Form::Gradients(solve(response)?)
            }
        }
        (Some(polynomial), _) => Form::Polynomial(polynomial),
        (None, Response::Quadratic { .. }) if on.way == Way::Auto => Form::Gradients(solve(response)?),
        (None, _) => {
            return Err(refused(
                "chebyshev",
                "the strength is so large that too many terms are needed; choose the method cg or exact",
            ));
        }
    };
    Ok(form)
}
