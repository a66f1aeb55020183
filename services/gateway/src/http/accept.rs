//! Content negotiation: the format of a response, from the `Accept` header.

use http::HeaderMap;
use http::header::ACCEPT;
use setpoint_proto::{ApiError, Reason};

use super::yaml::YAML;

/// The media type of Kubernetes' protobuf encoding.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The group of Tables and of PartialObjectMetadata.
const META: &str = "meta.k8s.io";
const META_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Yaml,
    /// Kubernetes' protobuf envelope.
    Protobuf,
}

/// All encodings; without an `Accept` header, the first is used.
const MEDIA: [Media; 3] = [Media::Json, Media::Yaml, Media::Protobuf];

impl Media {
    /// Returns the media type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => YAML,
            Self::Protobuf => PROTOBUF,
        }
    }
}

/// The form of objects in a response, with the version of the group `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As they are.
    Whole,
    /// A `Table`.
    Table(&'static str),
    /// A `PartialObjectMetadata`.
    Metadata(&'static str),
    /// A `PartialObjectMetadataList`.
    MetadataList(&'static str),
}

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) media: Media,
    pub(super) form: Form,
}

/// The formats that a kind does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lacking {
    pub(super) table: bool,
    /// Protobuf of whole objects.
    pub(super) protobuf: bool,
}

/// Returns the format for objects that the client prefers.
///
/// # Errors
/// `NotAcceptable` if no range of the header is supported.
pub(super) fn objects(headers: &HeaderMap, lacking: Lacking) -> Result<Format, ApiError> {
    let format = |range: &Range| {
        let media = MEDIA.into_iter().find(|media| range.allows(media.name()))?;
        let form = range.form()?;
        let lacks = match (form, media) {
            (Form::Table(_), Media::Protobuf) => true,
            (Form::Table(_), _) => lacking.table,
            (Form::Whole, Media::Protobuf) => lacking.protobuf,
            _ => false,
        };
        (!lacks).then_some(Format { media, form })
    };
    first(headers, format).ok_or_else(not_acceptable)
}

/// Returns the encoding of errors: JSON unless the client prefers another for whole objects.
pub(super) fn errors(headers: &HeaderMap) -> Media {
    let media = |range: &Range| {
        let media = MEDIA.into_iter().find(|media| range.allows(media.name()))?;
        (range.form() == Some(Form::Whole)).then_some(media)
    };
    first(headers, media).unwrap_or(Media::Json)
}

/// The format of a discovery document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    Legacy(Media),
    /// An `APIGroupDiscoveryList` of the given version.
    Aggregated(Media, &'static str),
}

/// Returns the format for discovery that the client prefers.
///
/// # Errors
/// `NotAcceptable` if no range of the header is supported.
pub(super) fn discovery(headers: &HeaderMap) -> Result<Discovery, ApiError> {
    let format = |range: &Range| {
        let media = MEDIA.into_iter().find(|media| range.allows(media.name()))?;
        match (range.param("as"), media) {
            (None, media) => Some(Discovery::Legacy(media)),
            (Some("APIGroupDiscoveryList"), media) => range
                .version("apidiscovery.k8s.io", &["v2", "v2beta1"])
                .map(|version| Discovery::Aggregated(media, version)),
            _ => None,
        }
    };
    first(headers, format).ok_or_else(not_acceptable)
}

/// Returns the index of the media type that the client prefers; `None` if it accepts none of them.
pub(super) fn media_type(headers: &HeaderMap, offered: &[&str]) -> Option<usize> {
    let index = |range: &Range| offered.iter().position(|name| range.allows(name));
    match headers.contains_key(ACCEPT) {
        true => first(headers, index),
        false => Some(0),
    }
}

/// Returns the first value that `format` has for a range of the header, in the client's order of preference.
fn first<T>(headers: &HeaderMap, format: impl Fn(&Range) -> Option<T>) -> Option<T> {
    let accepts = headers.get_all(ACCEPT).iter();
    let mut ranges: Vec<Range> = accepts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(Range::of)
        .collect();
    if ranges.iter().all(|range| range.name.is_empty()) {
        ranges = vec![Range::of("*/*")];
    }
    ranges.sort_by(|a, b| {
        let order = b.quality().total_cmp(&a.quality());
        order.then_with(|| a.wildcards().cmp(&b.wildcards()))
    });
    ranges.iter().find_map(format)
}

/// Returns the error of an `Accept` header without a supported format.
pub(super) fn not_acceptable() -> ApiError {
    refused(&MEDIA.map(Media::name))
}

/// Returns the error of an `Accept` header without a supported format of a stream.
pub(super) fn stream_not_acceptable() -> ApiError {
    refused(&[
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch",
    ])
}

fn refused(supported: &[&str]) -> ApiError {
    let supported = supported.join(", ");
    let message = format!("only the following media types are accepted: {supported}");
    ApiError::new(Reason::NotAcceptable, message)
}

/// A media range of an `Accept` header.
struct Range<'a> {
    name: &'a str,
    params: &'a str,
}

impl<'a> Range<'a> {
    fn of(text: &'a str) -> Self {
        let (name, params) = text.split_once(';').unwrap_or((text, ""));
        Self {
            name: name.trim(),
            params,
        }
    }

    /// Returns whether the range includes a media type.
    fn allows(&self, name: &str) -> bool {
        match self.name {
            "*/*" | "*" => true,
            "application/*" => name.starts_with("application/"),
            own => own == name,
        }
    }

    fn wildcards(&self) -> usize {
        self.name.matches('*').count()
    }

    fn quality(&self) -> f32 {
        let quality = self.param("q").and_then(|text| text.parse().ok());
        quality.unwrap_or(1.0)
    }

    /// Returns the requested form; `None` if there is no such form.
    fn form(&self) -> Option<Form> {
        let form: fn(&'static str) -> Form = match self.param("as") {
            None => return Some(Form::Whole),
            Some("Table") => Form::Table,
            Some("PartialObjectMetadata") => Form::Metadata,
            Some("PartialObjectMetadataList") => Form::MetadataList,
            Some(_) => return None,
        };
        self.version(META, &META_VERSIONS).map(form)
    }

    fn param(&self, name: &str) -> Option<&'a str> {
        let pairs = self
            .params
            .split(';')
            .filter_map(|pair| pair.split_once('='));
        let mut found = pairs.filter(|(key, _)| key.trim() == name);
        found.next().map(|(_, value)| value.trim())
    }

    /// Returns the requested version, if the group is this one and the version is supported.
    fn version(&self, group: &str, supported: &[&'static str]) -> Option<&'static str> {
        let requested = self.param("v");
        let mut supported = supported.iter().copied();
        supported
            .find(|version| Some(*version) == requested)
            .filter(|_| self.param("g") == Some(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, value.parse().expect("it is a header"))])
    }

    fn whole(media: Media) -> Format {
        let form = Form::Whole;
        Format { media, form }
    }

    #[test]
    fn the_preferred_supported_format_is_chosen() {
        let json = |form| Format {
            media: Media::Json,
            form,
        };
        let protobuf = |form| Format {
            media: Media::Protobuf,
            form,
        };
        for (value, format) in [
            ("", whole(Media::Json)),
            ("*/*", whole(Media::Json)),
            ("application/json, */*", whole(Media::Json)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                whole(Media::Protobuf),
            ),
            (
                "application/json;q=0.5,application/yaml;q=0.9",
                whole(Media::Yaml),
            ),
            ("*/*,application/yaml", whole(Media::Yaml)),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                json(Form::Table("v1")),
            ),
            (
                "application/json;as=Table;v=v1,application/json",
                whole(Media::Json),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
                whole(Media::Json),
            ),
            (
                "application/json;as=Table;v=v9;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io",
                json(Form::Table("v1beta1")),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                protobuf(Form::Metadata("v1")),
            ),
            (
                "text/html, application/xhtml+xml, */*;q=0.8",
                whole(Media::Json),
            ),
        ] {
            assert_eq!(
                objects(&accept(value), Lacking::default()),
                Ok(format),
                "{value}"
            );
        }
        assert_eq!(
            objects(&HeaderMap::new(), Lacking::default()),
            Ok(whole(Media::Json))
        );
    }

    #[test]
    fn an_unknown_format_is_not_acceptable() {
        let cbor = objects(&accept("application/cbor"), Lacking::default());
        let error = cbor.expect_err("it is not supported");
        assert_eq!(error.reason, Reason::NotAcceptable);
        let table = accept("application/json;as=Table;v=v1;g=meta.k8s.io");
        let without = Lacking {
            table: true,
            ..Lacking::default()
        };
        let error = objects(&table, without).expect_err("there is no table");
        assert_eq!(
            error.message,
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
    }

    #[test]
    fn custom_objects_have_protobuf_for_their_metadata_only() {
        let custom = Lacking {
            protobuf: true,
            ..Lacking::default()
        };
        let protobuf = objects(&accept(PROTOBUF), custom);
        protobuf.expect_err("there is no protobuf");
        let fallback = format!("{PROTOBUF}, application/json");
        let format = objects(&accept(&fallback), custom);
        assert_eq!(format, Ok(whole(Media::Json)));
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        let format = objects(&accept(&metadata), custom).expect("metadata has protobuf");
        assert_eq!(format.media, Media::Protobuf);
    }

    #[test]
    fn errors_are_encoded_as_whole_objects() {
        assert_eq!(errors(&accept(PROTOBUF)), Media::Protobuf);
        assert_eq!(errors(&accept("application/cbor")), Media::Json);
        let table = "application/yaml;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(errors(&accept(table)), Media::Json);
    }

    #[test]
    fn new_clients_get_aggregated_discovery() {
        let value =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        let format = discovery(&accept(value));
        assert_eq!(format, Ok(Discovery::Aggregated(Media::Json, "v2")));
        let value = format!("{PROTOBUF};g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList");
        let format = discovery(&accept(&value));
        assert_eq!(
            format,
            Ok(Discovery::Aggregated(Media::Protobuf, "v2beta1"))
        );
        let format = discovery(&accept(PROTOBUF));
        assert_eq!(format, Ok(Discovery::Legacy(Media::Protobuf)));
    }
}
