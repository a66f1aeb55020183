//! Commands as messages. Pure.

use super::message::Writer;
use super::{expression, set};
use crate::nftables::rule::Rule;
use crate::nftables::transaction::{Command, Hook};

/// Flags of messages: make it, at the end (`NLM_F_CREATE`, `NLM_F_APPEND`).
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;

/// Kinds of messages (`NFT_MSG_…`).
const NEW_TABLE: u8 = 0;
const DELETE_TABLE: u8 = 2;
const NEW_CHAIN: u8 = 3;
const DELETE_CHAIN: u8 = 5;
const NEW_RULE: u8 = 6;
const DELETE_RULE: u8 = 8;
const NEW_SET: u8 = 9;
const DELETE_SET: u8 = 11;
const NEW_ELEMENTS: u8 = 12;
const DELETE_ELEMENTS: u8 = 14;

/// The attribute of the table in all messages (`NFTA_…_TABLE`, `NFTA_TABLE_NAME`).
const TABLE: u16 = 1;
/// Attributes of chains (`NFTA_CHAIN_…`, `NFTA_HOOK_…`).
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
/// The policy of packets that come to the end of a chain with a hook (`NF_ACCEPT`).
const ACCEPT: u32 = 1;
/// Attributes of rules (`NFTA_RULE_…`).
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
/// The attribute of the name of sets (`NFTA_SET_NAME`).
const SET_NAME: u16 = 2;

/// Writes the messages of a command.
pub fn write(writer: &mut Writer, sequence: u32, table: &str, command: &Command) {
    let mut message = |kind, flags, content: &dyn Fn(&mut Writer)| {
        writer.nftables(kind, flags, sequence, |writer| {
            writer.text(TABLE, table);
            content(writer);
        });
    };
    match command {
        Command::AddTable => message(NEW_TABLE, CREATE, &|_| ()),
        Command::DeleteTable => message(DELETE_TABLE, 0, &|_| ()),
        Command::AddSet(name, kind) => message(NEW_SET, CREATE, &|writer| {
            writer.text(SET_NAME, name);
            set::write(writer, *kind, sequence);
        }),
        Command::DeleteSet(name) => message(DELETE_SET, 0, &|writer| writer.text(SET_NAME, name)),
        Command::AddChain(name, hook) => message(NEW_CHAIN, CREATE, &|writer| {
            chain(writer, name, hook.as_ref());
        }),
        Command::FlushChain(name) => {
            message(DELETE_RULE, 0, &|writer| writer.text(RULE_CHAIN, name));
        }
        Command::DeleteChain(name) => {
            message(DELETE_CHAIN, 0, &|writer| writer.text(CHAIN_NAME, name));
        }
        Command::AddRule(chain, of) => {
            message(NEW_RULE, CREATE | APPEND, &|writer| rule(writer, chain, of));
        }
        Command::AddElements(set, elements) => {
            set::parts(elements, &mut |part| {
                message(NEW_ELEMENTS, CREATE, &|writer| {
                    set::elements(writer, set, part);
                })
            });
        }
        Command::DeleteElements(set, elements) => {
            set::parts(elements, &mut |part| {
                message(DELETE_ELEMENTS, 0, &|writer| {
                    set::elements(writer, set, part);
                })
            });
        }
    }
}

fn chain(writer: &mut Writer, name: &str, hook: Option<&Hook>) {
    writer.text(CHAIN_NAME, name);
    let Some(hook) = hook else { return };
    writer.nested(CHAIN_HOOK, |writer| {
        writer.number(HOOK_NUMBER, hook.hook.1);
        writer.number(HOOK_PRIORITY, hook.priority.cast_unsigned());
    });
    writer.number(CHAIN_POLICY, ACCEPT);
    writer.text(CHAIN_TYPE, hook.kind);
}

fn rule(writer: &mut Writer, chain: &str, rule: &Rule) {
    writer.text(RULE_CHAIN, chain);
    writer.nested(RULE_EXPRESSIONS, |writer| {
        rule.iter()
            .for_each(|statement| expression::write(writer, statement));
    });
}
