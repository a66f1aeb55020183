//! Numbers for the texts of rules, so that a text of a request is hashed once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The number of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Symbol(u32);

impl Symbol {
    /// No text at all.
    pub(crate) const NONE: Self = Self(0);
    /// The text `*`.
    pub(crate) const ANY: Self = Self(1);
    const FIRST: u32 = 2;
}

/// The texts that the rules of an index have.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    known: HashMap<Box<str>, Counted>,
    free: Vec<Symbol>,
}

#[derive(Debug)]
struct Counted {
    symbol: Symbol,
    uses: usize,
}

impl Symbols {
    /// Returns the number of a text, and counts its use.
    ///
    /// # Panics
    /// With more than 2³² texts.
    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        if text == "*" {
            return Symbol::ANY;
        }
        if let Some(counted) = self.known.get_mut(text) {
            counted.uses += 1;
            return counted.symbol;
        }
        let symbol = self.free.pop().unwrap_or_else(|| {
            let used = u32::try_from(self.known.len()).expect("fewer texts than memory holds");
            Symbol(Symbol::FIRST + used)
        });
        self.known.insert(text.into(), Counted { symbol, uses: 1 });
        symbol
    }

    /// Returns the number of a text that was interned, and counts one use less.
    pub(crate) fn release(&mut self, text: &str) -> Symbol {
        let Some(counted) = self.known.get_mut(text) else {
            return Symbol::ANY;
        };
        counted.uses -= 1;
        let Counted { symbol, uses } = *counted;
        if uses == 0 {
            self.known.remove(text);
            self.free.push(symbol);
        }
        symbol
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the number of a text that a rule has.
    pub(crate) fn find(&self, text: &str) -> Option<Symbol> {
        match text {
            "*" => Some(Symbol::ANY),
            text => self.known.get(text).map(|counted| counted.symbol),
        }
    }
}

/// Hashes symbols, which are small numbers that nobody chooses.
#[derive(Default)]
pub(crate) struct SymbolHasher(u64);

/// Builds a [`SymbolHasher`].
pub(crate) type BySymbol = BuildHasherDefault<SymbolHasher>;

impl Hasher for SymbolHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        // 2⁶⁴ divided by the golden ratio.
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        self.0 = (self.0.rotate_left(23) ^ u64::from(number)).wrapping_mul(FACTOR);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_forgotten_after_its_last_use() {
        let mut symbols = Symbols::default();
        let get = symbols.intern("get");
        assert_eq!(symbols.intern("get"), get);
        assert_eq!(symbols.release("get"), get);
        assert_eq!(symbols.find("get"), Some(get));
        assert_eq!(symbols.release("get"), get);
        assert_eq!(symbols.find("get"), None);
        let list = symbols.intern("list");
        assert_eq!(list, get);
        assert_ne!(symbols.intern("watch"), list);
        assert_eq!(symbols.find("*"), Some(Symbol::ANY));
    }
}
