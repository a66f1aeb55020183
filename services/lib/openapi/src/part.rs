//! The parts from which the document of v2 is put together, so that a changed kind needs only its own part to be built
//! again.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use serde_json::{Value, json};

use super::gzip::{gunzip, gzip};
use super::{gnostic, v3};

/// A part of the document of v2, compressed.
pub(super) struct Part {
    /// The fields of `paths`, `definitions` and `parameters`, without braces.
    paths: Bytes,
    definitions: Bytes,
    /// `None` if there are none.
    parameters: Option<Bytes>,
    protobuf: Bytes,
}

impl Part {
    /// Returns the part that consists of these documents.
    pub(super) fn of(documents: impl Iterator<Item = Value>) -> Self {
        let (mut paths, mut definitions) = (Vec::new(), Vec::new());
        let (mut parameters, mut protobuf) = (Vec::new(), Vec::new());
        for document in documents {
            append_fields(&mut paths, &document["paths"]);
            append_fields(&mut definitions, &document["definitions"]);
            append_fields(&mut parameters, &document["parameters"]);
            protobuf.extend(gnostic::encode(&document));
        }
        // Writing to memory does not fail.
        let small = |plain: &[u8]| gzip(plain, Compression::fast()).unwrap_or_default();
        Self {
            paths: small(&paths),
            definitions: small(&definitions),
            parameters: (!parameters.is_empty()).then(|| small(&parameters)),
            protobuf: small(&protobuf),
        }
    }

    /// Returns the object of the paths in JSON.
    pub(super) fn paths(&self) -> io::Result<Vec<u8>> {
        object(&self.paths)
    }

    /// Returns the object of the definitions in JSON.
    pub(super) fn definitions(&self) -> io::Result<Vec<u8>> {
        object(&self.definitions)
    }
}

fn object(small: &[u8]) -> io::Result<Vec<u8>> {
    let fields = gunzip(small)?;
    Ok([b"{", &*fields, b"}"].concat())
}

/// Appends the fields of an object without its braces.
fn append_fields(json: &mut Vec<u8>, object: &Value) {
    let text = object.to_string();
    // Without an object there is no field.
    let fields = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let fields = fields.unwrap_or_default();
    if !json.is_empty() && !fields.is_empty() {
        json.push(b',');
    }
    json.extend_from_slice(fields.as_bytes());
}

/// Writes the document in JSON.
pub(super) fn write_json<'p>(
    out: &mut dyn Write,
    parts: impl Iterator<Item = &'p Part> + Clone,
) -> io::Result<()> {
    let info = v3::info();
    let head = json!({ "swagger": "2.0", "info": info }).to_string();
    out.write_all(head.strip_suffix('}').unwrap_or_default().as_bytes())?;
    out.write_all(br#","paths":{"#)?;
    write_joined(out, parts.clone().map(|part| &part.paths))?;
    out.write_all(br#"},"definitions":{"#)?;
    write_joined(out, parts.clone().map(|part| &part.definitions))?;
    let parameters = parts.filter_map(|part| part.parameters.as_ref());
    if parameters.clone().next().is_some() {
        out.write_all(br#"},"parameters":{"#)?;
        write_joined(out, parameters)?;
    }
    out.write_all(b"}}")
}

fn write_joined<'p>(out: &mut dyn Write, lists: impl Iterator<Item = &'p Bytes>) -> io::Result<()> {
    let mut is_first = true;
    for small in lists {
        let fields = gunzip(small)?;
        if fields.is_empty() {
            continue;
        }
        if !is_first {
            out.write_all(b",")?;
        }
        out.write_all(&fields)?;
        is_first = false;
    }
    Ok(())
}

/// Writes the document in protobuf: the parts one after another, as protobuf merges them.
pub(super) fn write_protobuf<'p>(
    out: &mut dyn Write,
    mut parts: impl Iterator<Item = &'p Part>,
) -> io::Result<()> {
    parts.try_for_each(|part| out.write_all(&gunzip(&part.protobuf)?))
}
