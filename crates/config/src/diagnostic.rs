//! What is wrong, where, and what would be right, in a form a terminal can show.

use super::Source;
use std::fmt;
use std::ops::Range;

/// Where a key or value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// Bytes of the config file.
    File(Range<usize>),
    /// A `--set`, as it was written.
    Set(String),
    /// A program that has put the config together.
    Program,
}

/// One problem of a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, or the `--set` that caused it.
    pub origin: String,
    /// The place in the file, where there is one.
    pub place: Option<Place>,
    /// The key with its section, such as `algorithm.penalty`; empty where no key is to blame.
    pub key: String,
    /// What is wrong and what was expected.
    pub message: String,
}

/// A place in a text; lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which line.
    pub line: usize,
    /// Which character of it.
    pub column: usize,
    /// How many characters are meant.
    pub width: usize,
    /// The line itself.
    pub text: String,
}

/// Everything that is wrong with a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// All problems, in the order of the file, those of `--set` last.
    pub diagnostics: Vec<Diagnostic>,
}

impl Diagnostic {
    pub(super) fn new(source: &Source, origin: Option<&Origin>, key: String, message: String) -> Self {
        match origin {
            Some(Origin::File(span)) => {
                let place = Some(Place::of(&source.text, span));
                Self { origin: source.name.clone(), place, key, message }
            }
            Some(Origin::Set(text)) => Self { origin: format!("--set {text}"), place: None, key, message },
            Some(Origin::Program) | None => Self { origin: source.name.clone(), place: None, key, message },
        }
    }
}

impl Place {
    fn of(text: &str, span: &Range<usize>) -> Self {
        // A parser may point behind the end, or into a character.
        let inside =
            |at: usize| (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let start = inside(span.start);
        let end = inside(span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let width = text[start..end.min(line_end)].trim_end().chars().count();
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: width.max(1),
            text: text[line_start..line_end].trim_end().to_string(),
        }
    }
}

impl ConfigError {
    /// Sorts and removes what was found twice.
    pub(super) fn new(mut diagnostics: Vec<Diagnostic>) -> Self {
        let rank = |diagnostic: &Diagnostic| match &diagnostic.place {
            Some(place) => (0, place.line, place.column),
            None if diagnostic.origin.starts_with("--set") => (2, 0, 0),
            None => (1, 0, 0),
        };
        diagnostics.sort_by_key(rank);
        diagnostics.dedup();
        Self { diagnostics }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some(place) = &self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        // A `--set` already shows its key.
        if !self.key.is_empty() && !self.origin.starts_with(&format!("--set {}=", self.key)) {
            write!(f, ": `{}`", self.key)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            let gutter = " ".repeat(number.len());
            // Tabs stay tabs, so that the caret stands under its word whatever their width.
            let before = place.text.chars().chain(std::iter::repeat(' ')).take(place.column - 1);
            let pad: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            write!(
                f,
                "\n{gutter} |\n{number} | {}\n{gutter} | {pad}{}",
                place.text,
                "^".repeat(place.width)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                write!(f, "\n\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
