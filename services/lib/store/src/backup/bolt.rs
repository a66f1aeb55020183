//! Reads the file of [bbolt], etcd's database: the keys and values of one of its buckets.
//!
//! A file is an array of pages. Each begins with a header of 16 bytes: its number, kind, number of elements, and number
//! of pages that continue it. One of the first two pages names the root of a tree of buckets, whose leaves have the
//! keys. All numbers are little-endian, as on every machine for which etcd is built.
//!
//! Nothing in the file is trusted: offsets are checked, and a tree that is deeper than any real one is an error.
//!
//! [bbolt]: https://github.com/etcd-io/bbolt

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::Error;

const PAGE_HEADER: usize = 16;
/// The size of the header of an element.
const ELEMENT: usize = 16;
/// The number of bytes of a meta page that its checksum covers.
const META_CHECKED: usize = 56;
const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// The bits of the kind of a page.
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
/// The page sizes that bbolt may have: those of operating systems.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=65536;
/// The depth that no tree of a real file reaches.
const DEPTH: usize = 64;

/// A file of bbolt.
pub(super) struct Database<'f> {
    file: &'f File,
    page_size: u64,
    pages: u64,
    /// The page of the root bucket.
    root: u64,
}

/// The value of a key, and where it stands in the file.
pub(super) struct Value<'p> {
    pub bytes: &'p [u8],
    pub offset: u64,
}

/// A function that gets the keys and values of a bucket.
type Visit<'v> = dyn FnMut(&[u8], Value<'_>) -> Result<(), Error> + 'v;

impl<'f> Database<'f> {
    /// Reads the newer of the two meta pages of a file with `size` bytes of data.
    ///
    /// # Errors
    /// Neither is valid, or the file cannot be read.
    pub fn open(file: &'f File, size: u64) -> Result<Self, Error> {
        let first = Meta::read(file, 0)?;
        // The second page is after the first, whose size a damaged first one does not tell.
        let sizes = first.as_ref().map_or(4096, |meta| meta.page_size);
        let metas = first.into_iter().chain(Meta::read(file, u64::from(sizes))?);
        let meta = metas.max_by_key(|meta| meta.transaction);
        let meta = meta.ok_or_else(|| damaged("no meta page"))?;
        let page_size = u64::from(meta.page_size);
        Ok(Self {
            file,
            page_size,
            pages: size / page_size,
            root: meta.root,
        })
    }

    /// Calls `visit` with each key and value of the bucket `name`, in order of the keys.
    ///
    /// # Errors
    /// The file has no such bucket, is damaged, or cannot be read; or `visit` has failed.
    pub fn visit(&self, name: &[u8], visit: &mut Visit<'_>) -> Result<(), Error> {
        let mut root = None;
        let mut left = self.pages;
        self.walk(self.root, DEPTH, &mut left, &mut |key, value| {
            if key == name {
                root = Some(number(value.bytes, 0)?);
            }
            Ok(())
        })?;
        match root {
            // The pages of a small bucket are in its value; a store that was ever used has a larger one.
            Some(0) | None => Err(damaged("no bucket of keys")),
            Some(root) => self.walk(root, DEPTH, &mut left, visit),
        }
    }

    /// Visits the tree below a page. `left` is the number of pages that were not read yet: each is in one tree, and
    /// there once.
    fn walk(
        &self,
        id: u64,
        depth: usize,
        left: &mut u64,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let page = self.page(id)?;
        let read = page.bytes.len() as u64 / self.page_size;
        *left = left
            .checked_sub(read)
            .ok_or_else(|| damaged("a page that is in the tree twice"))?;
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| damaged("a tree without an end"))?;
        for index in 0..page.count {
            let at = PAGE_HEADER + index * ELEMENT;
            match page.kind {
                BRANCH => self.walk(number(&page.bytes, at + 8)?, depth, left, visit)?,
                LEAF => {
                    let start = at.saturating_add(size(&page.bytes, at + 4)?);
                    let middle = start.saturating_add(size(&page.bytes, at + 8)?);
                    let end = middle.saturating_add(size(&page.bytes, at + 12)?);
                    let value = Value {
                        bytes: part(&page.bytes, middle, end)?,
                        offset: (id * self.page_size).saturating_add(middle as u64),
                    };
                    visit(part(&page.bytes, start, middle)?, value)?;
                }
                _ => return Err(damaged("a page of an unknown kind")),
            }
        }
        Ok(())
    }

    /// Reads a page with those that continue it.
    fn page(&self, id: u64) -> Result<Page, Error> {
        let header = self.read(id, PAGE_HEADER as u64)?;
        let more = u64::from(small(&header, 12)?);
        let length = more.saturating_add(1).saturating_mul(self.page_size);
        Ok(Page {
            kind: short(&header, 8)?,
            count: usize::from(short(&header, 10)?),
            bytes: self.read(id, length)?,
        })
    }

    fn read(&self, id: u64, length: u64) -> Result<Vec<u8>, Error> {
        let begin = id.saturating_mul(self.page_size);
        if begin.saturating_add(length) > self.pages.saturating_mul(self.page_size) {
            return Err(damaged("a page beyond the end"));
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, begin)?;
        Ok(bytes)
    }
}

struct Page {
    kind: u16,
    /// The number of elements.
    count: usize,
    bytes: Vec<u8>,
}

struct Meta {
    page_size: u32,
    root: u64,
    transaction: u64,
}

impl Meta {
    /// Reads a meta page; `None` if there is no valid one.
    fn read(file: &File, offset: u64) -> Result<Option<Self>, Error> {
        let mut bytes = [0; META_CHECKED + 8];
        if file
            .read_exact_at(&mut bytes, offset.saturating_add(PAGE_HEADER as u64))
            .is_err()
        {
            return Ok(None);
        }
        let page_size = small(&bytes, 8)?;
        let is_valid = small(&bytes, 0)? == MAGIC
            && small(&bytes, 4)? == VERSION
            && PAGE_SIZES.contains(&page_size)
            && number(&bytes, META_CHECKED)? == checksum(&bytes[..META_CHECKED]);
        Ok(is_valid.then_some(Self {
            page_size,
            root: number(&bytes, 16)?,
            transaction: number(&bytes, 48)?,
        }))
    }
}

/// Returns the checksum of a meta page: FNV-1a of 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(super) fn damaged(reason: &str) -> Error {
    Error::Damaged(reason.to_owned())
}

fn part(bytes: &[u8], start: usize, end: usize) -> Result<&[u8], Error> {
    bytes
        .get(start..end)
        .ok_or_else(|| damaged("an element beyond its page"))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Error> {
    let bytes = part(bytes, at, at.saturating_add(N))?;
    bytes
        .try_into()
        .map_err(|_| damaged("a number beyond its page"))
}

fn short(bytes: &[u8], at: usize) -> Result<u16, Error> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn small(bytes: &[u8], at: usize) -> Result<u32, Error> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn size(bytes: &[u8], at: usize) -> Result<usize, Error> {
    Ok(small(bytes, at)? as usize)
}

fn number(bytes: &[u8], at: usize) -> Result<u64, Error> {
    array(bytes, at).map(u64::from_le_bytes)
}
