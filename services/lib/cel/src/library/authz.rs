//! Questions about permissions: `authorizer.group('').resource('pods').check('create').allowed()`.

use std::fmt;
use std::sync::Arc;

use super::super::meter::Failure;
use super::super::values::Val;
use super::{Cost, Entry};

pub(in super::super) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(in super::super) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
const DECIDED: &str = "kubernetes.authorization.Decision";

/// Decides about the permissions of the user of a request.
pub trait Authorizer: fmt::Debug + Sync {
    /// Returns the decision about a question.
    fn decide(&self, question: &Question) -> Decision;
}

/// A question about a resource or, if there is a path, about that.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // They have the names of the API.
pub struct Question {
    /// The namespace and the name of a ServiceAccount, if the question is about one instead of the user.
    pub service_account: Option<(String, String)>,
    pub path: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
    pub verb: String,
}

/// The answer to a question.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // They have the names of the API.
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
}

/// A question as far as it has been asked, and the decision in the end.
#[derive(Clone, Debug)]
pub(in super::super) struct Asked<'a> {
    pub(in super::super) type_name: &'static str,
    pub(in super::super) authorizer: &'a dyn Authorizer,
    pub(in super::super) question: Question,
    pub(in super::super) decision: Decision,
}

pub(super) const ENTRIES: &[Entry] = &[
    (
        &["authorizer::path(string) pathCheck"],
        Cost::Unit,
        |args, _| {
            ask(args, PATH_CHECK, |question, path| {
                question.path = required("path", path)?;
                Ok(())
            })
        },
    ),
    (
        &["authorizer::group(string) groupCheck"],
        Cost::Unit,
        |args, _| {
            ask(args, GROUP_CHECK, |question, group| {
                question.group = group.to_owned();
                Ok(())
            })
        },
    ),
    (
        &["authorizer::serviceAccount(string, string) authorizer"],
        Cost::Unit,
        |args, _| match args {
            [Val::Asked(asked), Val::String(namespace), Val::String(name)] => {
                let mut asked = (**asked).clone();
                asked.question.service_account = Some(((**namespace).into(), (**name).into()));
                Ok(Val::Asked(Arc::new(asked)))
            }
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["groupCheck::resource(string) resourceCheck"],
        Cost::Unit,
        |args, _| {
            ask(args, RESOURCE_CHECK, |question, resource| {
                question.resource = required("resource", resource)?;
                Ok(())
            })
        },
    ),
    (
        &["resourceCheck::subresource(string) resourceCheck"],
        Cost::Unit,
        |args, _| {
            ask(args, RESOURCE_CHECK, |question, subresource| {
                question.subresource = subresource.to_owned();
                Ok(())
            })
        },
    ),
    (
        &["resourceCheck::namespace(string) resourceCheck"],
        Cost::Unit,
        |args, _| {
            ask(args, RESOURCE_CHECK, |question, namespace| {
                question.namespace = namespace.to_owned();
                Ok(())
            })
        },
    ),
    (
        &["resourceCheck::name(string) resourceCheck"],
        Cost::Unit,
        |args, _| {
            ask(args, RESOURCE_CHECK, |question, name| {
                question.name = name.to_owned();
                Ok(())
            })
        },
    ),
    // Selectors narrow a question. One that cannot be parsed does not, so that the question is about more.
    (
        &["resourceCheck::fieldSelector(string) resourceCheck"],
        Cost::Selector,
        |args, _| {
            ask(args, RESOURCE_CHECK, |question, selector| {
                question.field_selector = selector.to_owned();
                Ok(())
            })
        },
    ),
    (
        &["resourceCheck::labelSelector(string) resourceCheck"],
        Cost::Selector,
        |args, _| {
            ask(args, RESOURCE_CHECK, |question, selector| {
                question.label_selector = selector.to_owned();
                Ok(())
            })
        },
    ),
    (
        &[
            "pathCheck::check(string) decision",
            "resourceCheck::check(string) decision",
        ],
        Cost::Decision,
        |args, _| {
            let asked = ask(args, DECIDED, |question, verb| {
                question.verb = verb.to_owned();
                Ok(())
            })?;
            let Val::Asked(asked) = asked else {
                return Err(Failure::NoOverload);
            };
            let decision = asked.authorizer.decide(&asked.question);
            Ok(Val::Asked(Arc::new(Asked {
                decision,
                ..(*asked).clone()
            })))
        },
    ),
    (&["decision::allowed() bool"], Cost::Unit, |args, _| {
        decided(args, |decision| Val::Bool(decision.allowed))
    }),
    (&["decision::reason() string"], Cost::Unit, |args, _| {
        decided(args, |decision| Val::from(&*decision.reason))
    }),
    (&["decision::errored() bool"], Cost::Unit, |args, _| {
        decided(args, |_| Val::Bool(false))
    }),
    (&["decision::error() string"], Cost::Unit, |args, _| {
        decided(args, |_| Val::from(""))
    }),
];

/// Adds to a question what the argument says.
fn ask<'a>(
    args: &[Val<'a>],
    type_name: &'static str,
    add: impl FnOnce(&mut Question, &str) -> Result<(), Failure>,
) -> Result<Val<'a>, Failure> {
    let [Val::Asked(asked), Val::String(text)] = args else {
        return Err(Failure::NoOverload);
    };
    let mut asked = (**asked).clone();
    add(&mut asked.question, text)?;
    asked.type_name = type_name;
    Ok(Val::Asked(Arc::new(asked)))
}

fn required(what: &str, text: &str) -> Result<String, Failure> {
    match text.trim() {
        "" => Err(Failure::Error(format!("{what} must not be empty"))),
        _ => Ok(text.to_owned()),
    }
}

fn decided<'a>(
    args: &[Val<'a>],
    read: impl FnOnce(&Decision) -> Val<'a>,
) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Asked(asked)] => Ok(read(&asked.decision)),
        _ => Err(Failure::NoOverload),
    }
}
