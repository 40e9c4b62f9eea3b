//! Names on the broker: tokens, subjects, streams, consumers and inboxes of a run.
//!
//! ```text
//! fedkin.<run>.<to>.<from>.<slot>        a message, or the head of one that was cut
//! fedkin.<run>.<to>.<from>.<slot>.<i>    part i of one that was cut
//! fedkin.<run>.status.<node>.now         what a node says about itself
//! ```

use crate::transport::{STATUS, is_plain};

pub use crate::transport::Token;

/// First token of every subject.
pub const PREFIX: &str = "fedkin";
/// Whether a text names a run: 16 lower-case hexadecimal digits.
pub fn is_run(run: &str) -> bool {
    run.len() == 16 && run.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Whether a text names a slot: `[A-Za-z0-9_-]`, 1 to 40 characters.
pub fn is_slot(slot: &str) -> bool {
    is_plain(slot)
}

/// The stream of a run.
pub fn stream(run: &str) -> String {
    format!("{PREFIX}_{run}")
}

/// All subjects of a run.
pub fn tree(run: &str) -> String {
    format!("{PREFIX}.{run}.>")
}

/// The filter of a node's consumer: every message to it, without the parts.
pub fn mailbox(run: &str, me: &Token) -> String {
    format!("{PREFIX}.{run}.{me}.*.*")
}

/// The parts of every message to a node.
pub fn parts(run: &str, me: &Token) -> String {
    format!("{PREFIX}.{run}.{me}.*.*.*")
}

/// Everything one node may send to another.
pub fn link(run: &str, to: &Token, from: &Token) -> String {
    format!("{PREFIX}.{run}.{to}.{from}.>")
}

/// A message.
pub fn message(run: &str, to: &Token, from: &Token, slot: &str) -> String {
    format!("{PREFIX}.{run}.{to}.{from}.{slot}")
}

/// A part of a message.
pub fn part(run: &str, to: &Token, from: &Token, slot: &str, index: u32) -> String {
    format!("{PREFIX}.{run}.{to}.{from}.{slot}.{index}")
}

/// What a node says about itself.
pub fn status(run: &str, node: &Token) -> String {
    format!("{PREFIX}.{run}.{STATUS}.{node}.now")
}

/// The prefix of a node's inboxes. It is one token: the broker's wildcards match whole tokens only.
pub fn inbox(node: &Token) -> String {
    format!("_INBOX_{node}")
}

/// The consumer of a node.
pub fn consumer(node: &Token) -> String {
    node.to_string()
}

/// Subjects of the broker's JSON interface.
pub mod api {
    use super::{Token, consumer, mailbox, stream};

    /// What the broker calls its interface.
    pub const PREFIX: &str = "$JS.API";

    /// Creates the stream of a run.
    pub fn create_stream(run: &str) -> String {
        format!("$JS.API.STREAM.CREATE.{}", stream(run))
    }

    /// Creates a node's consumer. The filter stands in the subject, so permissions cover it.
    pub fn create_consumer(run: &str, me: &Token) -> String {
        format!("$JS.API.CONSUMER.CREATE.{}.{}.{}", stream(run), consumer(me), mailbox(run, me))
    }

    /// Deletes a node's consumer.
    pub fn delete_consumer(run: &str, me: &Token) -> String {
        format!("$JS.API.CONSUMER.DELETE.{}.{}", stream(run), consumer(me))
    }

    /// Asks a node's consumer for messages.
    pub fn pull(run: &str, me: &Token) -> String {
        format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", stream(run), consumer(me))
    }

    /// Reads the last message of a subject.
    pub fn get(run: &str, subject: &str) -> String {
        format!("$JS.API.DIRECT.GET.{}.{subject}", stream(run))
    }
}

/// Sender and slot of a message to a node, from its subject.
pub(super) fn parse(run: &str, me: &Token, subject: &str) -> Option<(Token, String)> {
    let rest = subject.strip_prefix(&format!("{PREFIX}.{run}.{me}."))?;
    let (from, slot) = rest.split_once('.')?;
    Some((Token::parse(from)?, is_slot(slot).then(|| slot.to_owned())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn nasty_names_become_distinct_tokens_that_stay_one_token() {
        let long = "a".repeat(10_000);
        let longer = "a".repeat(10_001);
        let names = [
            "",
            " ",
            ".",
            "..",
            "*",
            ">",
            "a.b",
            "a b",
            "a*",
            "a>",
            "client 1",
            "client.1",
            "é",
            "e\u{301}",
            "名前",
            "\0",
            "\n",
            "\r\n",
            "$JS",
            "status",
            "Status",
            "x-",
            "x-1",
            "x",
            "_INBOX",
            "-",
            "_",
            "x-0123456789abcdef0123456789abcdef",
            &long,
            &longer,
            &long[..40],
            &long[..41],
        ];
        let tokens: BTreeSet<Token> = names.iter().map(|name| Token::of(name)).collect();
        assert_eq!(tokens.len(), names.len());
        for token in &tokens {
            assert!(is_plain(token.as_str()), "{token}");
            assert_eq!(Token::parse(token.as_str()).as_ref(), Some(token));
        }
        assert_eq!(Token::of("client-7").as_str(), "client-7");
        assert!(Token::parse("status").is_none());
        assert!(Token::parse("x-short").is_none());
    }

    #[test]
    fn a_message_subject_reads_back_and_others_do_not() {
        let (to, from) = (Token::of("s.1"), Token::of("c 1"));
        let run = "0123456789abcdef";
        let subject = message(run, &to, &from, "up-3");
        assert_eq!(parse(run, &to, &subject), Some((from.clone(), "up-3".to_owned())));
        assert_eq!(parse(run, &from, &subject), None);
        assert_eq!(parse(run, &to, &part(run, &to, &from, "up-3", 0)), None);
        assert_eq!(parse("0123456789abcdee", &to, &subject), None);
    }

    #[test]
    fn a_run_is_sixteen_lower_case_digits() {
        assert!(is_run("0123456789abcdef"));
        for bad in ["", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdeff", "0123456789abcde.", "*"] {
            assert!(!is_run(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_name_has_a_token_that_parses(name in ".*") {
            let token = Token::of(&name);
            prop_assert!(is_plain(token.as_str()));
            prop_assert_eq!(Token::parse(token.as_str()), Some(token));
        }
    }
}
