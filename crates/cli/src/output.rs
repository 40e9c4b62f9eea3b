//! The one place that writes to the terminal. Colours vanish where standard output or error is no terminal.

use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

/// Names of facts, headings.
pub(crate) const STRONG: Style = Style::new().bold();
/// What is good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What needs a second look.
pub(crate) const DOUBT: Style = AnsiColor::Yellow.on_default().bold();
/// What is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// A text in a style; the style never carries meaning alone.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints a text that ends in a line break, or gets one.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write!(out, "{text}{end}").and_then(|()| out.flush()).map_err(|error| Failure::writing(&error))
}

/// Prints one JSON object on one line.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::Unexpected(format!("cannot write JSON: {error}")))?;
    // Past anstream: no byte of the JSON is to be taken for a colour.
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Failure::writing(&error))
}

/// Warnings beside JSON: for a person who watches; scripts read them in the JSON.
pub(crate) fn warn_aside<W: std::fmt::Display>(warnings: impl IntoIterator<Item = W>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let mut err = anstream::stderr().lock();
    for warning in warnings {
        let _ = writeln!(err, "{} {warning}", paint(DOUBT, "warning:"));
    }
}

/// A warning that nobody may miss: on standard error, terminal or not.
pub(crate) fn warn(warning: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{} {warning}", paint(DOUBT, "warning:"));
}

/// Says on the side what happened; a bar may be on the screen.
pub(crate) fn note_aside(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Says why the command ended early.
pub(crate) fn complain(failure: &Failure) {
    let mut err = anstream::stderr().lock();
    // There is no one left to tell if standard error is closed, too.
    let _ = match failure {
        Failure::Closed => Ok(()),
        Failure::Interrupted(text) => writeln!(err, "{text}"),
        _ => writeln!(err, "{} {failure}", paint(BAD, "error:")),
    };
}

/// Lines of a name and one or more values, aligned.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    lines: Vec<(String, Style, String)>,
}

impl Facts {
    /// Adds a fact.
    pub(crate) fn add(&mut self, name: &str, value: impl Into<String>) -> &mut Self {
        self.styled(name, STRONG, value)
    }

    /// Adds a fact whose name stands out.
    pub(crate) fn styled(&mut self, name: &str, style: Style, value: impl Into<String>) -> &mut Self {
        self.lines.push((name.to_string(), style, value.into()));
        self
    }

    /// Adds several values under one name; nothing if there are none.
    pub(crate) fn list(&mut self, name: &str, values: impl IntoIterator<Item = String>) -> &mut Self {
        for (i, value) in values.into_iter().enumerate() {
            self.add(if i == 0 { name } else { "" }, value);
        }
        self
    }

    /// The lines as text. Values of several lines stay in their column.
    pub(crate) fn text(&self) -> String {
        let width = self.lines.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, style, value) in &self.lines {
            let pad = " ".repeat(width - name.chars().count() + 2);
            let value = value.replace('\n', &format!("\n{}", " ".repeat(width + 2)));
            let name = if name.is_empty() { String::new() } else { paint(*style, name) };
            let _ = writeln!(text, "{name}{pad}{value}");
        }
        text
    }
}

/// A noun with its count.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The width that texts are broken at.
pub(crate) const WIDTH: usize = 96;

/// Breaks a text into lines of at most `width` characters.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_line_up_and_keep_their_column() {
        let mut facts = Facts::default();
        facts.add("a", "1").add("longer", "2\n3").list("all", ["x".to_string(), "y".to_string()]);
        let plain = anstream::adapter::strip_str(&facts.text()).to_string();
        assert_eq!(plain, "a       1\nlonger  2\n        3\nall     x\n        y\n");
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), Vec::<String>::new());
        assert_eq!(wrapped("a-word-wider-than-the-line b", 5), ["a-word-wider-than-the-line", "b"]);
    }
}
