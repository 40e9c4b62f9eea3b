//! What the checks need to know of Rust: words and signs without comments and texts, paths, and where tests stand.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A word or a sign of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A keyword or a name.
    Word(String),
    /// `::`, which holds paths together.
    Colons,
    /// Any other sign.
    Sign(char),
    /// A text between quotes, without them.
    Text(String),
}

/// A token and the line it begins in, from 1 on.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) token: Token,
    pub(crate) line: usize,
}

impl Placed {
    pub(crate) fn is(&self, sign: char) -> bool {
        self.token == Token::Sign(sign)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        match &self.token {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }
}

/// The tokens of a file. Comments and numbers are left out.
pub(crate) fn tokens(text: &str) -> Vec<Placed> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let named = |c: char| c == '_' || c.is_alphanumeric();
    let (mut all, mut here, mut line) = (Vec::new(), 0, 1);
    while here < chars.len() {
        let (start, first) = (here, at(here));
        let mut token = None;
        if first.is_whitespace() {
            here += 1;
        } else if first == '/' && at(here + 1) == '/' {
            here += chars[here..].iter().take_while(|c| **c != '\n').count();
        } else if first == '/' && at(here + 1) == '*' {
            here = end_of_comment(&chars, here);
        } else if let Some((inside, end)) = quoted(&chars, here) {
            token = Some(Token::Text(inside));
            here = end;
        } else if first == '\'' {
            here = end_of_character_or_lifetime(&chars, here);
        } else if named(first) {
            let word: String = chars[here..].iter().take_while(|c| named(**c)).collect();
            here += word.chars().count();
            // A raw name is the name behind the sign.
            if word == "r" && at(here) == '#' && named(at(here + 1)) {
                here += 1;
            } else if !first.is_numeric() {
                token = Some(Token::Word(word));
            }
        } else if first == ':' && at(here + 1) == ':' {
            token = Some(Token::Colons);
            here += 2;
        } else {
            token = Some(Token::Sign(first));
            here += 1;
        }
        all.extend(token.map(|token| Placed { token, line }));
        line += chars[start..here.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    all
}

/// Comments may stand in comments.
fn end_of_comment(chars: &[char], start: usize) -> usize {
    let (mut depth, mut here) = (0_usize, start);
    while here < chars.len() {
        match chars[here..] {
            ['/', '*', ..] => (depth, here) = (depth + 1, here + 2),
            ['*', '/', ..] => (depth, here) = (depth - 1, here + 2),
            _ => here += 1,
        }
        if depth == 0 {
            break;
        }
    }
    here
}

/// The text of a literal that begins here, and where it ends: plain or raw, of characters or bytes.
fn quoted(chars: &[char], start: usize) -> Option<(String, usize)> {
    let prefix = chars[start..].iter().take_while(|c| matches!(c, 'b' | 'c' | 'r')).count();
    let raw = chars[start..start + prefix].contains(&'r');
    let hashes = chars[start + prefix..].iter().take_while(|c| **c == '#').count();
    let open = start + prefix + hashes;
    if prefix > 2 || chars.get(open) != Some(&'"') || (hashes > 0 && !raw) {
        return None;
    }
    let mut here = open + 1;
    while here < chars.len() {
        let ends = || chars[here + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
        match chars[here] {
            '\\' if !raw => here += 2,
            '"' if ends() => break,
            _ => here += 1,
        }
    }
    let end = here.min(chars.len());
    Some((chars[open + 1..end].iter().collect(), end + 1 + hashes))
}

/// `'a'` and `'\n'` end with a quote, `'static` does not.
fn end_of_character_or_lifetime(chars: &[char], start: usize) -> usize {
    if chars.get(start + 1) == Some(&'\\') {
        let rest = chars.get(start + 3..).unwrap_or_default();
        return start + 4 + rest.iter().take_while(|c| **c != '\'').count();
    }
    if chars.get(start + 2) == Some(&'\'') { start + 3 } else { start + 1 }
}

/// A file without its tests.
#[derive(Debug)]
pub(crate) struct Product {
    /// What is left.
    pub(crate) tokens: Vec<Placed>,
    /// Lines of the whole file that no test covers, comments and empty lines included.
    pub(crate) lines: usize,
    /// Files that only its tests bring in, as `#[path]` names them, or the name of the module.
    pub(crate) only_tests: Vec<TestFile>,
}

/// A file that a module of tests stands in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TestFile {
    Module(String),
    At(String),
}

/// Cuts everything that stands behind `#[cfg(test)]`.
pub(crate) fn without_tests(text: &str) -> Product {
    let all = tokens(text);
    let (mut kept, mut only_tests) = (Vec::new(), Vec::new());
    let mut tested = BTreeSet::new();
    let mut here = 0;
    while here < all.len() {
        if !begins_test(&all[here..]) {
            kept.push(all[here].clone());
            here += 1;
            continue;
        }
        let end = end_of_item(&all, here);
        only_tests.extend(test_file(&all[here..end]));
        let last = all.get(end - 1).map_or(0, |token| token.line);
        tested.extend(all[here].line..=last);
        here = end;
    }
    let lines = text.lines().count() - tested.len();
    Product { tokens: kept, lines, only_tests }
}

/// Whether `#[cfg(test)]` stands here, alone or with further conditions.
fn begins_test(tokens: &[Placed]) -> bool {
    let [hash, open, cfg, ..] = tokens else { return false };
    if !(hash.is('#') && open.is('[') && cfg.is_word("cfg")) {
        return false;
    }
    let inside = || tokens.iter().take_while(|token| !token.is(']'));
    inside().any(|token| token.is_word("test")) && !inside().any(|token| token.is_word("not"))
}

/// Where the item behind attributes ends: behind its semicolon or its braces.
fn end_of_item(all: &[Placed], start: usize) -> usize {
    let mut here = start;
    while all.get(here).is_some_and(|token| token.is('#')) {
        here = end_of_group(all, here + 1);
    }
    let import = all[here..].iter().take(6).any(|token| token.is_word("use"));
    while let Some(token) = all.get(here) {
        match token.token {
            Token::Sign(';') => return here + 1,
            Token::Sign('{') if !import => return end_of_group(all, here),
            Token::Sign('(' | '[' | '{') => here = end_of_group(all, here),
            _ => here += 1,
        }
    }
    all.len()
}

/// Behind the bracket that closes the one that stands here.
fn end_of_group(all: &[Placed], start: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in all.iter().enumerate().skip(start) {
        match token.token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    all.len()
}

/// The file of `mod name;` behind its attributes.
fn test_file(item: &[Placed]) -> Option<TestFile> {
    let [.., module, name, end] = item else { return None };
    if !(module.is_word("mod") && end.is(';')) {
        return None;
    }
    let path = item.windows(3).find_map(|three| match three {
        [path, sign, Placed { token: Token::Text(text), .. }] if path.is_word("path") && sign.is('=') => {
            Some(TestFile::At(text.clone()))
        }
        _ => None,
    });
    path.or_else(|| Some(TestFile::Module(name.word()?.to_string())))
}

/// A path as it is written, `::` between its parts, and the name it gets where it is imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) parts: Vec<String>,
    pub(crate) name: String,
}

/// All paths of the tree that begins here, and where it ends. `a::{b, c::*}` is the paths `a::b` and `a::c::*`.
pub(crate) fn tree(all: &[Placed], start: usize) -> (Vec<Named>, usize) {
    let mut paths = Vec::new();
    let end = branch(all, start, &[], &mut paths);
    (paths, end)
}

fn branch(all: &[Placed], start: usize, before: &[String], paths: &mut Vec<Named>) -> usize {
    let mut parts = before.to_vec();
    let mut here = start;
    loop {
        match all.get(here).map(|placed| &placed.token) {
            Some(Token::Word(word)) => {
                // `a::{self}` is `a`.
                if word != "self" || parts.is_empty() {
                    parts.push(word.clone());
                }
                here += 1;
            }
            Some(Token::Sign('*')) => {
                paths.push(Named { parts, name: "*".into() });
                return here + 1;
            }
            Some(Token::Sign('{')) => {
                here += 1;
                while all.get(here).is_some_and(|token| !token.is('}')) {
                    here = branch(all, here, &parts, paths);
                    here += usize::from(all.get(here).is_some_and(|token| token.is(',')));
                }
                return here + 1;
            }
            // Whatever else stands here is no path: step over it, so that nobody waits for an end.
            _ => {
                here += 1;
                break;
            }
        }
        let goes_on = all.get(here).is_some_and(|next| next.token == Token::Colons);
        let typed = all.get(here + 1).is_some_and(|next| next.is('<'));
        if !goes_on || typed {
            break;
        }
        here += 1;
    }
    let mut name = parts.last().cloned().unwrap_or_default();
    if all.get(here).is_some_and(|token| token.is_word("as"))
        && let Some(other) = all.get(here + 1).and_then(Placed::word)
    {
        name = other.to_string();
        here += 2;
    }
    paths.push(Named { parts, name });
    here
}

/// All files below a folder whose names end with this, in the order of their names.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}
