//! The state of a sequence: a gateway, watchers of all objects, and temporary watchers.

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::{Result, Unstructured};
use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

use super::pages::Pages;
use super::request::{ObjectPath, delete_options, patch, selection};
use super::watcher::{Key, Watcher, key};
use crate::edit::{edit, edit_part, number};
use crate::example;
use crate::gateway::{Gateway, Reply, collection, json_request};
use crate::object::encoded;

pub struct Session {
    gateway: Gateway,
    /// Watchers of each kind, in all namespaces.
    all: Vec<Watcher>,
    /// Watchers with selectors.
    some: Vec<Watcher>,
    pages: Option<Pages>,
}

/// The allowed effect of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    One,
    Many,
}

impl Session {
    /// Watches all objects of a gateway.
    pub fn start(gateway: Gateway) -> Self {
        gateway.create(
            kinds().by_kind("v1", "Namespace").expect("the kind exists"),
            "other",
        );
        let mut session = Self {
            gateway,
            all: Vec::new(),
            some: Vec::new(),
            pages: None,
        };
        for kind in kinds().iter() {
            let watch = session.open(kind, &format!("{}?", collection(kind, "")));
            session.all.extend(watch);
        }
        session.follow();
        session
    }

    pub fn create(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = ObjectPath::any(u)?;
        let mut document = example::document(target.kind, &target.name);
        edit(target.kind, &mut document, u)?;
        let (content, body) = encoded(target.kind, document.to_string(), u.ratio(1, 4)?);
        let path = with_options(target.collection(), u)?;
        self.write(&target, request(Method::POST, &path, content, body));
        Ok(())
    }

    pub fn update(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = self.target(u)?;
        let mut document = self.current(&target);
        let part = part(&target, u)?;
        match part {
            "" => edit(target.kind, &mut document, u)?,
            "scale" => document = scale(&target, number(u)?),
            _ => edit_part(target.kind, part, &mut document, u)?,
        }
        if u.ratio(1, 2)?
            && let Some(metadata) = document["metadata"].as_object_mut()
        {
            metadata.remove("resourceVersion");
        }
        let in_protobuf = part != "scale" && u.ratio(1, 4)?;
        let (content, body) = encoded(target.kind, document.to_string(), in_protobuf);
        let path = with_options(below(&target, part), u)?;
        self.write(&target, request(Method::PUT, &path, content, body));
        Ok(())
    }

    pub fn patch(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = self.target(u)?;
        let part = part(&target, u)?;
        let (content, body) = patch(target.kind, part, &self.current(&target), u)?;
        let path = with_options(below(&target, part), u)?;
        self.write(
            &target,
            request(Method::PATCH, &path, content, body.to_string()),
        );
        Ok(())
    }

    pub fn bind(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = self.pod(u)?;
        let node = *u.choose(&["node-1", "a", "", "-"])?;
        let body = json!({ "metadata": { "name": target.name }, "target": { "kind": "Node", "name": node } });
        let path = below(&target, "binding");
        self.write(&target, json_request(Method::POST, &path, body.to_string()));
        Ok(())
    }

    pub fn delete(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = self.target(u)?;
        let options = delete_options(u)?;
        self.write(
            &target,
            json_request(Method::DELETE, &target.path(), options.to_string()),
        );
        Ok(())
    }

    pub fn delete_collection(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = ObjectPath::any(u)?;
        let path = format!("{}?{}", target.collection(), selection(u)?);
        let options = delete_options(u)?;
        self.send_checked(
            json_request(Method::DELETE, &path, options.to_string()),
            Effect::Many,
        );
        Ok(())
    }

    /// Starts a watch of some objects of a kind.
    pub fn watch(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = ObjectPath::any(u)?;
        let namespace = if u.arbitrary()? {
            &target.namespace
        } else {
            ""
        };
        let path = format!("{}?{}&", collection(target.kind, namespace), selection(u)?);
        let watch = self.open(target.kind, &path);
        self.some.extend(watch);
        self.follow();
        Ok(())
    }

    /// Checks a list of some objects against the watcher of all.
    pub fn list(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = ObjectPath::any(u)?;
        let path = format!("{}?{}", target.collection(), selection(u)?);
        let Some(items) = self.items(&path) else {
            return Ok(());
        };
        let all = &self.watcher(&target).objects;
        for (key, item) in items {
            let known = all.get(&key).cloned().map(untyped);
            assert_eq!(known, Some(item));
        }
        Ok(())
    }

    pub fn begin_pages(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let target = ObjectPath::any(u)?;
        let path = format!("{}?{}", collection(target.kind, ""), selection(u)?);
        let limit = u.int_in_range(1..=3)?;
        if let Some(list) = self.get(&path) {
            let rest = list["items"].as_array().cloned().unwrap_or_default().into();
            self.pages = Some(Pages {
                path,
                token: String::new(),
                limit,
                rest,
            });
            self.next_page();
        }
        Ok(())
    }

    pub fn next_page(&mut self) {
        let Some(mut pages) = self.pages.take() else {
            return;
        };
        let token = utf8_percent_encode(&pages.token, NON_ALPHANUMERIC);
        let path = format!("{}&limit={}&continue={token}", pages.path, pages.limit);
        let page = self.get(&path).expect("the store is not compacted");
        pages.check_page(&page);
        self.pages = Some(pages).filter(|pages| !pages.token.is_empty());
    }

    /// Checks that the objects of each watcher are equal to a list.
    pub fn compare(&mut self) {
        self.follow();
        while self.pages.is_some() {
            self.next_page();
        }
        for watcher in self.all.iter().chain(&self.some) {
            let items = self
                .items(&watcher.path)
                .expect("a watched path can be listed");
            let objects = watcher.objects.iter();
            let objects = objects.map(|(key, object)| (key.clone(), untyped(object.clone())));
            assert_eq!(items, objects.collect(), "{}", watcher.path);
        }
    }

    /// Runs the background tasks, such as the expiry of Events.
    pub fn run_background_for(&mut self, time: Duration) {
        self.gateway.run_background_for(time);
    }

    /// Returns a path, mostly of an existing object.
    fn target(&self, u: &mut Unstructured<'_>) -> Result<ObjectPath> {
        self.target_among(u, |_| true)
    }

    fn pod(&self, u: &mut Unstructured<'_>) -> Result<ObjectPath> {
        self.target_among(u, |kind| kind.kind == "Pod")
    }

    fn target_among(&self, u: &mut Unstructured<'_>, of: fn(&Kind) -> bool) -> Result<ObjectPath> {
        let kinds = self.all.iter().filter(|watcher| of(watcher.kind));
        let there = kinds.flat_map(|watcher| watcher.objects.keys().map(|key| (watcher.kind, key)));
        let there: Vec<_> = there.collect();
        if there.is_empty() || u.ratio(1, 8)? {
            return ObjectPath::any(u);
        }
        let (kind, (namespace, name)) = *u.choose(&there)?;
        Ok(ObjectPath {
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
        })
    }

    /// Returns the current object, or an example if there is none.
    fn current(&self, target: &ObjectPath) -> Value {
        let there = self.watcher(target).objects.get(&self.key(target));
        there
            .cloned()
            .unwrap_or_else(|| example::document(target.kind, &target.name))
    }

    fn key(&self, target: &ObjectPath) -> Key {
        let namespace = if target.kind.namespaced {
            target.namespace.clone()
        } else {
            String::new()
        };
        (namespace, target.name.clone())
    }

    fn watcher(&self, target: &ObjectPath) -> &Watcher {
        let of = self.all.iter().find(|watcher| watcher.kind == target.kind);
        of.expect("there is a watcher of each kind")
    }

    /// Sends a write of one object and checks that the acknowledged object is stored.
    fn write(&mut self, target: &ObjectPath, request: Request<Body>) {
        let dry = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("dryRun"));
        let before = self.gateway.revision();
        let reply = self.send_checked(request, Effect::One);
        assert!(
            !dry || self.gateway.revision() == before,
            "a dry run has written"
        );
        let Some(answer) = reply.json().filter(|_| reply.code.is_success() && !dry) else {
            return;
        };
        if answer["kind"] != target.kind.kind.as_str() {
            return;
        }
        // A write that removes the last finalizer completes a deletion; the response is the last version of the object.
        let stored = (!ends_deletion(&answer)).then_some(answer.clone());
        let known = self.watcher(target).objects.get(&key(&answer));
        assert_eq!(
            known,
            stored.as_ref(),
            "acknowledged, but not sent to the watcher"
        );
        let (namespace, name) = key(&answer);
        let path = format!("{}/{name}", collection(target.kind, &namespace));
        assert_eq!(
            self.get(&path),
            stored,
            "acknowledged, but not returned by a read"
        );
    }

    /// Sends a write and checks that watchers get events of all of its writes, and no others.
    fn send_checked(&mut self, request: Request<Body>, effect: Effect) -> Reply {
        let before = self.gateway.revision();
        let what = format!("{} {}", request.method(), request.uri());
        let reply = self.gateway.send(request);
        let written = self.gateway.revision() - before;
        let writes = self.follow() as u64;
        assert_eq!(writes, written, "{what}: {reply:?}");
        match effect {
            Effect::One if reply.code.is_success() => assert!(written <= 1, "{what}: {reply:?}"),
            Effect::One => assert_eq!(written, 0, "{what}: {reply:?}"),
            Effect::Many => {}
        }
        reply
    }

    /// Applies the events of all watchers; returns the number of writes that the watchers of all objects got.
    fn follow(&mut self) -> usize {
        let Self {
            gateway, all, some, ..
        } = self;
        gateway.block_on(async {
            let mut writes = 0;
            for watcher in all {
                writes += watcher.follow().await;
            }
            for watcher in some {
                watcher.follow().await;
            }
            writes
        })
    }

    fn open(&self, kind: &'static Kind, path: &str) -> Option<Watcher> {
        let watch = format!("{path}watch=true&timeoutSeconds=1000000");
        let request = json_request(Method::GET, &watch, String::new());
        let answer = self.gateway.block_on(self.gateway.open(request));
        let path = path.trim_end_matches(['&', '?']).to_owned();
        let opened = answer.status().is_success();
        opened.then(|| Watcher::new(kind, path, answer.into_body().into_data_stream()))
    }

    fn get(&self, path: &str) -> Option<Value> {
        let reply = self
            .gateway
            .send(json_request(Method::GET, path, String::new()));
        reply
            .code
            .is_success()
            .then(|| reply.json().expect("a response is JSON"))
    }

    fn items(&self, path: &str) -> Option<BTreeMap<Key, Value>> {
        let list = self.get(path)?;
        let items = list["items"].as_array().expect("a list has items");
        Some(items.iter().map(|item| (key(item), item.clone())).collect())
    }
}

/// Returns an object as in a list, whose items have no type.
fn untyped(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !["apiVersion", "kind"].contains(&name.as_str()));
    }
    object
}

fn request(method: Method, path: &str, content: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, content);
    request.body(body.into()).expect("the path is valid")
}

/// Returns the suffix of an object, its status, or its scale.
fn part(target: &ObjectPath, u: &mut Unstructured<'_>) -> Result<&'static str> {
    let part = *u.choose(&["", "", "status", "scale"])?;
    Ok(if target.kind.has_subresource(part) {
        part
    } else {
        ""
    })
}

fn scale(target: &ObjectPath, replicas: i64) -> Value {
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": { "name": target.name },
        "spec": { "replicas": replicas },
    })
}

fn below(target: &ObjectPath, part: &str) -> String {
    match part {
        "" => target.path(),
        part => format!("{}/{part}", target.path()),
    }
}

fn with_options(path: String, u: &mut Unstructured<'_>) -> Result<String> {
    let options = u.choose(&[
        "",
        "",
        "",
        "?dryRun=All",
        "?fieldValidation=Strict",
        "?fieldManager=a",
    ])?;
    Ok(path + options)
}

/// Returns whether an object has a deletion timestamp, but neither a finalizer nor a grace period that delays its end.
fn ends_deletion(object: &Value) -> bool {
    let meta = &object["metadata"];
    let grace = meta["deletionGracePeriodSeconds"].as_i64();
    meta["deletionTimestamp"].is_string()
        && meta["finalizers"].is_null()
        && grace.unwrap_or_default() == 0
        && object["spec"]["finalizers"].is_null()
}
