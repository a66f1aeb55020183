//! The format of netlink: messages of attributes, in one batch. Pure.
//!
//! Lengths and headers are in the order of the processor's bytes, values in that of the network, unless a value says
//! otherwise. Headers and attributes begin at multiples of four bytes.

use std::io;

use rustix::io::Errno;

use super::command;
use crate::nftables::transaction::Transaction;

/// Marks an attribute of attributes (`NLA_F_NESTED`).
const NESTED: u16 = 0x8000;
/// Asks the kernel to do something (`NLM_F_REQUEST`).
const REQUEST: u16 = 1;
/// The type of an answer with an error (`NLMSG_ERROR`).
const ERROR: u16 = 2;
/// The types of the messages around a transaction (`NFNL_MSG_BATCH_BEGIN`, `NFNL_MSG_BATCH_END`).
const BEGIN: u16 = 16;
const END: u16 = 17;
/// The subsystem of nftables (`NFNL_SUBSYS_NFTABLES`).
const NFTABLES: u8 = 10;
/// The address families (`AF_UNSPEC`, `AF_INET`).
const UNSPEC: u8 = 0;
const IPV4: u8 = 2;
/// The length of a header of a message.
const HEADER: usize = 16;

/// The end of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// They take effect.
    Commit,
    /// The kernel checks them and forgets them.
    Abort,
}

/// The bytes of a transaction.
pub struct Batch;

impl Batch {
    /// Returns a transaction for the kernel. The sequence numbers of messages are the numbers of their commands, and
    /// one more.
    ///
    /// # Errors
    /// If a name is longer than an attribute can be.
    pub fn of(transaction: &Transaction, ending: Ending) -> io::Result<Vec<u8>> {
        let mut writer = Writer::default();
        let subsystem = u16::from(NFTABLES).to_be_bytes();
        writer.message(BEGIN, 0, 0, (UNSPEC, subsystem), |_| ());
        for (sequence, command) in (1..).zip(&transaction.commands) {
            command::write(&mut writer, sequence, &transaction.table, command);
        }
        if ending == Ending::Commit {
            writer.message(END, 0, 0, (UNSPEC, subsystem), |_| ());
        }
        match writer.is_too_long {
            true => Err(io::Error::other("a name is longer than a message can have")),
            false => Ok(writer.bytes),
        }
    }
}

/// Writes messages.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl Writer {
    /// Writes a message of nftables for IPv4.
    pub fn nftables(
        &mut self,
        kind: u8,
        flags: u16,
        sequence: u32,
        content: impl FnOnce(&mut Self),
    ) {
        let kind = u16::from_be_bytes([NFTABLES, kind]);
        self.message(kind, flags, sequence, (IPV4, [0, 0]), content);
    }

    fn message(
        &mut self,
        kind: u16,
        flags: u16,
        sequence: u32,
        (family, resource): (u8, [u8; 2]),
        content: impl FnOnce(&mut Self),
    ) {
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | REQUEST).to_ne_bytes());
        self.bytes.extend(sequence.to_ne_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend([family, 0, resource[0], resource[1]]);
        content(self);
        let length = self.bytes.len().saturating_sub(start);
        self.is_too_long |= u32::try_from(length).is_err();
        let length = u32::try_from(length).unwrap_or_default();
        self.set(start, &length.to_ne_bytes());
    }

    /// Writes an attribute.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.attribute(kind, |writer| writer.bytes.extend(value));
    }

    /// Writes a text, which ends with a zero.
    pub fn text(&mut self, kind: u16, text: &str) {
        self.attribute(kind, |writer| {
            writer.bytes.extend(text.as_bytes());
            writer.bytes.push(0);
        });
    }

    /// Writes a number.
    pub fn number(&mut self, kind: u16, number: u32) {
        self.bytes(kind, &number.to_be_bytes());
    }

    /// Writes an attribute of attributes.
    pub fn nested(&mut self, kind: u16, content: impl FnOnce(&mut Self)) {
        self.attribute(kind | NESTED, content);
    }

    fn attribute(&mut self, kind: u16, content: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend(kind.to_ne_bytes());
        content(self);
        let length = self.bytes.len().saturating_sub(start);
        self.is_too_long |= u16::try_from(length).is_err();
        let length = u16::try_from(length).unwrap_or_default();
        self.set(start, &length.to_ne_bytes());
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        let places = self.bytes.iter_mut().skip(at);
        places.zip(bytes).for_each(|(place, byte)| *place = *byte);
    }
}

/// Returns the error of an answer, and the number of the command; no number for the transaction as a whole.
pub fn error_of(answer: &[u8]) -> Option<(Option<usize>, Errno)> {
    let number = |at: usize| Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let code = number(HEADER)?.cast_signed().checked_neg()?;
    // The header of the message that it answers follows.
    let sequence = number(HEADER + 4 + 8)?;
    let command = usize::try_from(sequence).ok()?.checked_sub(1);
    (kind == ERROR && code != 0).then(|| (command, Errno::from_raw_os_error(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_their_length_and_padding() {
        let mut writer = Writer::default();
        writer.nested(1, |inner| inner.text(2, "ab"));
        let length = |bytes: u16| bytes.to_ne_bytes();
        let expected = [
            length(12),
            (NESTED | 1).to_ne_bytes(),
            length(7),
            2u16.to_ne_bytes(),
            *b"ab",
            [0, 0],
        ];
        assert_eq!(writer.bytes, expected.concat());
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_not_another_message() {
        let mut transaction = Transaction::new("t");
        transaction.chain("x".repeat(70_000));
        assert!(Batch::of(&transaction, Ending::Commit).is_err());
    }

    #[test]
    fn an_answer_that_is_cut_is_no_error() {
        assert_eq!(error_of(&[]), None);
        assert_eq!(error_of(&[0; 30]), None);
    }
}
