//! Compiles the .proto files to Rust: messages with Kubernetes' JSON, kinds, services and an embedded descriptor set.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use heck::ToUpperCamelCase as _;
use prost_build::Config;
use prost_reflect::prost_types::field_descriptor_proto::Label;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor,
};

/// Messages whose JSON is written by hand, in `src/wellknown.rs`, `json_schema.rs`, `duration.rs`,
/// `time.rs` and `number.rs`.
const BY_HAND: &[&str] = &[
    "k8s.apiextensions.v1.JSON",
    "k8s.apiextensions.v1.JSONSchemaPropsOrArray",
    "k8s.apiextensions.v1.JSONSchemaPropsOrBool",
    "k8s.apiextensions.v1.JSONSchemaPropsOrStringArray",
    "k8s.authentication.v1.AttestationValue",
    "k8s.authentication.v1.ExtraValue",
    "k8s.authorization.v1.ExtraValue",
    "k8s.certificates.v1.ExtraValue",
    "k8s.meta.v1.Duration",
    "k8s.meta.v1.FieldsV1",
    "k8s.meta.v1.IntOrString",
    "k8s.meta.v1.MicroTime",
    "k8s.meta.v1.Quantity",
    "k8s.meta.v1.RawExtension",
    "k8s.meta.v1.Time",
    "k8s.meta.v1.Verbs",
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true).open_files(sources()?)?;

    let pool = compiler.descriptor_pool();
    let bare = compiler.encode_file_descriptor_set();
    fs::write(out.join("descriptors.bin"), bare)?;
    let commented = compiler.include_source_info(true);
    let commented = commented.encode_file_descriptor_set();
    fs::write(out.join("commented_descriptors.bin"), commented)?;
    fs::write(
        out.join("comments.txt"),
        comments(compiler.file_descriptor_set()),
    )?;
    fs::write(out.join("kinds.rs"), kinds(&pool)?)?;

    let mut files = compiler.file_descriptor_set();
    require_values(&mut files, &pool)?;
    let mut config = Config::new();
    config
        .out_dir(&out)
        .btree_map(["."])
        .bytes(["."])
        .extern_path(".google.protobuf.Any", "crate::any::Any")
        .extern_path(".setpoint.v1.WatchEvent", "crate::watch::WatchEvent")
        // They are texts for users of the API, and would be in the metadata of each crate that uses the messages.
        .disable_comments([".k8s"])
        .include_file("messages.rs")
        .service_generator(tonic_prost_build::configure().service_generator());
    for message in pool
        .all_messages()
        .filter(|m| m.full_name().starts_with("k8s."))
    {
        derive_json(&mut config, &pool, &message);
    }
    for message in answers(&pool) {
        config.message_attribute(
            message.full_name(),
            "#[derive(serde::Serialize)]\n#[serde(rename_all = \"camelCase\")]",
        );
        for field in message.fields() {
            if let Kind::Enum(of) = field.kind() {
                let text = format!("crate::why::text::<crate::setpoint::{}, _>", of.name());
                let attribute = format!("#[serde(serialize_with = {text:?})]");
                config.field_attribute(field.full_name(), attribute);
            }
        }
    }
    config.compile_fds(files)?;
    openapi(&out)
}

/// Returns the comments of Kubernetes' messages and of their fields: lines of a name, a tab and the text, in the order
/// of the names.
fn comments(files: FileDescriptorSet) -> String {
    let files = files.file.into_iter();
    let mut lines: Vec<_> = files
        .filter(|file| file.name().starts_with("k8s/"))
        .flat_map(comments_of)
        .collect();
    lines.sort_unstable();
    lines.concat()
}

fn comments_of(file: FileDescriptorProto) -> Vec<String> {
    let locations = file.source_code_info.clone().unwrap_or_default().location;
    let lines = locations.iter().filter_map(|location| {
        let words = location.leading_comments.as_deref()?.split_whitespace();
        let (name, text) = (
            name_at(&file, &location.path)?,
            words.collect::<Vec<_>>().join(" "),
        );
        Some(format!("{}.{name}\t{text}\n", file.package()))
    });
    lines.collect()
}

/// Returns the name of the message or field at a path of `SourceCodeInfo`: 4 is the field of a file with its messages,
/// and 2 that of a message with its fields.
fn name_at(file: &FileDescriptorProto, path: &[i32]) -> Option<String> {
    let message = |index: i32| file.message_type.get(usize::try_from(index).ok()?);
    match *path {
        [4, index] => Some(message(index)?.name().to_owned()),
        [4, index, 2, field] => {
            let message = message(index)?;
            let field = message.field.get(usize::try_from(field).ok()?)?;
            Some(format!("{}.{}", message.name(), field.name()))
        }
        _ => None,
    }
}

/// Compiles the messages of OpenAPI documents, which are no API objects and have no descriptors at run time.
fn openapi(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=openapi");
    let files = protox::compile(["openapi/openapiv2.proto"], ["."])?;
    let mut config = Config::new();
    config.out_dir(out).include_file("openapi.rs");
    Ok(config.compile_fds(files)?)
}

/// Returns the messages that `setpoint why` and `setpoint history` print as JSON.
fn answers(pool: &DescriptorPool) -> impl Iterator<Item = MessageDescriptor> {
    let files = ["setpoint/why.proto", "setpoint/cause.proto"];
    pool.all_messages()
        .filter(move |message| files.contains(&message.parent_file().name()))
        // Serialized as the text of the header.
        .filter(|message| message.name() != "Traceparent")
}

fn sources() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in ["k8s", "setpoint"] {
        println!("cargo::rerun-if-changed={folder}");
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension() == Some("proto".as_ref()) {
                files.push(Path::new(folder).join(path.file_name().ok_or("a file has a name")?));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns Setpoint's options of a field or message, or the default if there are none.
fn rules(options: &DynamicMessage, extension: &ExtensionDescriptor) -> DynamicMessage {
    let value = options.get_extension(extension);
    value
        .as_message()
        .cloned()
        .expect("both of our extensions are messages")
}

fn flag(rules: &DynamicMessage, name: &str) -> bool {
    rules
        .get_field_by_name(name)
        .and_then(|value| value.as_bool())
        .unwrap_or(false)
}

fn text(rules: &DynamicMessage, name: &str) -> String {
    let value = rules.get_field_by_name(name);
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn field_rules(pool: &DescriptorPool, field: &FieldDescriptor) -> DynamicMessage {
    let extension = pool
        .get_extension_by_name("setpoint.field")
        .expect("options.proto declares it");
    rules(&field.options(), &extension)
}

/// Labels `value` fields as required, which proto3 does not have but prost supports: they become plain structs, which
/// are always written and may be missing when decoded, as in Kubernetes' Go types.
fn require_values(
    files: &mut FileDescriptorSet,
    pool: &DescriptorPool,
) -> Result<(), Box<dyn Error>> {
    for file in &mut files.file {
        let package = file.package().to_owned();
        for message in &mut file.message_type {
            let name = format!("{package}.{}", message.name());
            let Some(described) = pool.get_message_by_name(&name) else {
                continue;
            };
            for field in &mut message.field {
                let number = u32::try_from(field.number())?;
                let known = described
                    .get_field(number)
                    .ok_or("the pool has the same fields")?;
                if flag(&field_rules(pool, &known), "value") {
                    field.set_label(Label::Required);
                }
            }
        }
    }
    Ok(())
}

fn derive_json(config: &mut Config, pool: &DescriptorPool, message: &MessageDescriptor) {
    if message.is_map_entry() || BY_HAND.contains(&message.full_name()) {
        return;
    }
    let path = format!(".{}", message.full_name());
    config.message_attribute(
        &path,
        "#[derive(serde::Serialize, serde::Deserialize)]\n#[serde(default)]",
    );
    for field in message.fields() {
        if field.name() == "cause" {
            config.field_attribute(format!("{path}.cause"), "#[serde(skip)]");
            continue;
        }
        let attributes = json_attributes(&field, &field_rules(pool, &field));
        config.field_attribute(
            format!("{path}.{}", field.name()),
            format!("#[serde({attributes})]"),
        );
    }
}

fn json_attributes(field: &FieldDescriptor, rules: &DynamicMessage) -> String {
    if flag(rules, "inline") {
        return "flatten".into();
    }
    let (value, always) = (flag(rules, "value"), flag(rules, "always"));
    let optional = field.supports_presence() && !value && !field.is_list() && !field.is_map();
    let mut attributes = vec![format!("rename = {:?}", field.json_name())];
    attributes.push(match (encoding(field), reader(field, optional)) {
        (Some(module), _) => format!("with = \"crate::wellknown::{module}\""),
        (None, Some(function)) if has_type(field) => format!(
            "deserialize_with = \"crate::lenient::{function}\", serialize_with = \"crate::object::typed_list\""
        ),
        (None, Some(function)) => format!("deserialize_with = \"crate::lenient::{function}\""),
        (None, None) => "default".into(),
    });
    if !always && (!value || flag(rules, "omitzero")) {
        let skip = match optional {
            true => "Option::is_none",
            false => "crate::lenient::is_zero",
        };
        attributes.push(format!("skip_serializing_if = {skip:?}"));
    }
    attributes.join(", ")
}

/// Returns the function of `src/lenient.rs` that deserializes the field; `None` if derived code suffices.
fn reader(field: &FieldDescriptor, optional: bool) -> Option<&'static str> {
    let object = matches!(field.kind(), Kind::Message(m) if !BY_HAND.contains(&m.full_name()));
    match (field.is_map(), field.is_list(), object, optional) {
        (true, ..) => Some("map"),
        (_, true, true, _) => Some("object_list"),
        (_, true, false, _) => Some("list"),
        (_, _, true, true) => Some("optional_object"),
        (_, _, true, false) => Some("object"),
        (_, _, false, true) => None,
        (_, _, false, false) => Some("scalar"),
    }
}

/// Returns whether the JSON of the objects in the field has their kind and version, as if they were objects of their
/// own.
fn has_type(field: &FieldDescriptor) -> bool {
    field.full_name() == "k8s.apps.v1.StatefulSetSpec.volume_claim_templates"
}

/// Returns the module that serializes the field, if its type is bytes or a number with a fraction.
fn encoding(field: &FieldDescriptor) -> Option<&'static str> {
    match field.kind() {
        Kind::Bytes => Some("base64_bytes"),
        Kind::Double => Some("double"),
        Kind::Message(entry)
            if field.is_map() && entry.map_entry_value_field().kind() == Kind::Bytes =>
        {
            Some("base64_map")
        }
        _ => None,
    }
}

/// Generates `impl Body` for each kind, `impl Resource` for each stored or computed one, and the only lists of kinds in
/// Rust: `for_each_kind!`, `for_each_stored_kind!`, `for_each_version!`, `for_each_review!` and `for_each_computed!`.
fn kinds(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let extension = pool
        .get_extension_by_name("setpoint.kind")
        .ok_or("options.proto declares it")?;
    let mut impls = String::new();
    let (mut all, mut stored) = (String::new(), String::new());
    let (mut versions, mut reviews, mut computed) = (String::new(), String::new(), String::new());
    for message in pool
        .all_messages()
        .filter(|m| m.options().has_extension(&extension))
    {
        let rules = rules(&message.options(), &extension);
        let path = rust_path(message.full_name());
        let entry = format!("            {path} => {:?},\n", message.full_name());
        all.push_str(&entry);
        if !text(&rules, "version_of").is_empty() {
            versions.push_str(&entry);
        }
        if flag(&rules, "review") {
            reviews.push_str(&entry);
        }
        write!(impls, "{}", body(&message, &path))?;
        if flag(&rules, "computed") {
            computed.push_str(&entry);
            write!(impls, "{}", resource(pool, &message, &rules, &path))?;
        }
        if is_stored(&rules) {
            stored.push_str(&entry);
            write!(impls, "{}", resource(pool, &message, &rules, &path))?;
        }
    }
    let all = list("for_each_kind", "every kind, request bodies included", &all);
    let stored = list("for_each_stored_kind", "every stored kind", &stored);
    let versions = list(
        "for_each_version",
        "every other version of a stored kind",
        &versions,
    );
    let reviews = list("for_each_review", "every review", &reviews);
    let computed = list("for_each_computed", "every computed kind", &computed);
    Ok(format!(
        "{impls}\n/// Messages whose JSON is not an object of their fields.\npub const SCALARS: &[&str] = &{BY_HAND:?};\n{all}{stored}{versions}{reviews}{computed}"
    ))
}

/// Returns whether objects of the kind are stored as its message.
fn is_stored(rules: &DynamicMessage) -> bool {
    let is_other = !text(rules, "version_of").is_empty();
    let is_answered = flag(rules, "review") || flag(rules, "computed");
    !text(rules, "plural").is_empty() && !is_other && !is_answered
}

/// Returns a macro that calls another one with a list of kinds.
fn list(name: &str, of: &str, kinds: &str) -> String {
    format!(
        "/// Calls `$with!` with {of}: its type and its message's name.\n#[macro_export]\nmacro_rules! {name} {{\n    ($with:ident) => {{\n        $with! {{\n{kinds}        }}\n    }};\n}}\n"
    )
}

/// Returns the path of a message's type. prost writes acronyms in names with one capital letter.
fn rust_path(full_name: &str) -> String {
    let (package, name) = full_name.rsplit_once('.').unwrap_or(("", full_name));
    let module = package.replace('.', "::");
    format!("$crate::{module}::{}", name.to_upper_camel_case())
}

fn body(message: &MessageDescriptor, path: &str) -> String {
    let identified = message
        .get_field_by_name("metadata")
        .is_some_and(|field| matches!(field.kind(), Kind::Message(m) if m.full_name() == "k8s.meta.v1.ObjectMeta"));
    let (get, get_mut) = match identified {
        true => ("Some(&self.metadata)", "Some(&mut self.metadata)"),
        false => ("None", "None"),
    };
    format!(
        "impl crate::Body for {} {{\n    fn metadata(&self) -> Option<&crate::meta::ObjectMeta> {{\n        {get}\n    }}\n    fn metadata_mut(&mut self) -> Option<&mut crate::meta::ObjectMeta> {{\n        {get_mut}\n    }}\n}}\n",
        path.replace("$crate", "crate"),
    )
}

fn resource(
    pool: &DescriptorPool,
    message: &MessageDescriptor,
    rules: &DynamicMessage,
    path: &str,
) -> String {
    let (group, version, plural) = (
        text(rules, "group"),
        text(rules, "version"),
        text(rules, "plural"),
    );
    let (api_version, resource) = match group.as_str() {
        "" => (version, plural),
        _ => (format!("{group}/{version}"), format!("{plural}.{group}")),
    };
    format!(
        "impl crate::Resource for {} {{\n\
         type Status = {};\n\
         const KIND: &'static str = {:?};\n\
         const API_VERSION: &'static str = {api_version:?};\n\
         const RESOURCE: &'static str = {resource:?};\n\
         const TYPE_URL: &'static str = \"type.googleapis.com/{}\";\n\
         fn meta(&self) -> &crate::meta::ObjectMeta {{ &self.metadata }}\n\
         fn meta_mut(&mut self) -> &mut crate::meta::ObjectMeta {{ &mut self.metadata }}\n\
         {}}}\n",
        path.replace("$crate", "crate"),
        status(message),
        message.name(),
        message.full_name(),
        set_status(pool, message),
    )
}

/// Returns the type of a kind's status: `Infallible`, which has no value, for a kind without one.
fn status(message: &MessageDescriptor) -> String {
    match status_field(message).map(|field| field.kind()) {
        Some(Kind::Message(status)) => rust_path(status.full_name()).replace("$crate", "crate"),
        _ => "std::convert::Infallible".to_owned(),
    }
}

fn set_status(pool: &DescriptorPool, message: &MessageDescriptor) -> String {
    let set = match status_field(message) {
        Some(field) if flag(&field_rules(pool, &field), "value") => "self.status = status;",
        Some(_) => "self.status = Some(status);",
        None => "match status {}",
    };
    format!("fn set_status(&mut self, status: Self::Status) {{ {set} }}\n")
}

fn status_field(message: &MessageDescriptor) -> Option<FieldDescriptor> {
    let field = message.get_field_by_name("status")?;
    matches!(field.kind(), Kind::Message(_)).then_some(field)
}
