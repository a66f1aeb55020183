//! The state of a sequence: a gateway, watchers of everything, and others that come and go.

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
use super::replica::{Key, Replica, key};
use super::request::{Place, delete_options, patch, selection};
use crate::edit::{edit, edit_part, number};
use crate::example;
use crate::gateway::{Gateway, Reply, collection, json_request};
use crate::object::encoded;

pub struct Session {
    gateway: Gateway,
    /// One of each kind, in all namespaces.
    all: Vec<Replica>,
    /// With selectors.
    some: Vec<Replica>,
    pages: Option<Pages>,
}

/// What a request may write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    One,
    Many,
}

impl Session {
    pub fn start() -> Self {
        let gateway = Gateway::start();
        gateway.create(
            kinds().by_kind("v1", "Namespace").expect("it is served"),
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
        let place = Place::any(u)?;
        let mut document = example::document(place.kind, &place.name);
        edit(place.kind, &mut document, u)?;
        let (content, body) = encoded(place.kind, document.to_string(), u.ratio(1, 4)?);
        let path = with_options(place.collection(), u)?;
        self.write(&place, request(Method::POST, &path, content, body));
        Ok(())
    }

    pub fn update(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = self.place(u)?;
        let mut document = self.now(&place);
        let part = part(&place, u)?;
        match part {
            "" => edit(place.kind, &mut document, u)?,
            "scale" => document = scale(&place, number(u)?),
            _ => edit_part(place.kind, part, &mut document, u)?,
        }
        if u.ratio(1, 2)?
            && let Some(metadata) = document["metadata"].as_object_mut()
        {
            metadata.remove("resourceVersion");
        }
        let in_protobuf = part != "scale" && u.ratio(1, 4)?;
        let (content, body) = encoded(place.kind, document.to_string(), in_protobuf);
        let path = with_options(below(&place, part), u)?;
        self.write(&place, request(Method::PUT, &path, content, body));
        Ok(())
    }

    pub fn patch(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = self.place(u)?;
        let part = part(&place, u)?;
        let (content, body) = patch(place.kind, part, &self.now(&place), u)?;
        let path = with_options(below(&place, part), u)?;
        self.write(
            &place,
            request(Method::PATCH, &path, content, body.to_string()),
        );
        Ok(())
    }

    pub fn bind(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = self.pod(u)?;
        let node = *u.choose(&["node-1", "a", "", "-"])?;
        let body = json!({ "metadata": { "name": place.name }, "target": { "kind": "Node", "name": node } });
        let path = below(&place, "binding");
        self.write(&place, json_request(Method::POST, &path, body.to_string()));
        Ok(())
    }

    pub fn delete(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = self.place(u)?;
        let options = delete_options(u)?;
        self.write(
            &place,
            json_request(Method::DELETE, &place.path(), options.to_string()),
        );
        Ok(())
    }

    pub fn delete_collection(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = Place::any(u)?;
        let path = format!("{}?{}", place.collection(), selection(u)?);
        let options = delete_options(u)?;
        self.judged(
            json_request(Method::DELETE, &path, options.to_string()),
            Effect::Many,
        );
        Ok(())
    }

    /// Watches some objects of a kind.
    pub fn watch(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = Place::any(u)?;
        let namespace = if u.arbitrary()? { &place.namespace } else { "" };
        let path = format!("{}?{}&", collection(place.kind, namespace), selection(u)?);
        let watch = self.open(place.kind, &path);
        self.some.extend(watch);
        self.follow();
        Ok(())
    }

    /// A list of some objects must be of those that everybody knows.
    pub fn list(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = Place::any(u)?;
        let path = format!("{}?{}", place.collection(), selection(u)?);
        let Some(items) = self.items(&path) else {
            return Ok(());
        };
        let all = &self.replica(&place).objects;
        for (key, item) in items {
            assert_eq!(all.get(&key), Some(&item));
        }
        Ok(())
    }

    pub fn begin_pages(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = Place::any(u)?;
        let path = format!("{}?{}", collection(place.kind, ""), selection(u)?);
        let limit = u.int_in_range(1..=3)?;
        if let Some(list) = self.get(&path) {
            let rest = list["items"].as_array().cloned().unwrap_or_default().into();
            self.pages = Some(Pages {
                path,
                token: String::new(),
                limit,
                rest,
            });
            self.turn_page();
        }
        Ok(())
    }

    pub fn turn_page(&mut self) {
        let Some(mut pages) = self.pages.take() else {
            return;
        };
        let token = utf8_percent_encode(&pages.token, NON_ALPHANUMERIC);
        let path = format!("{}&limit={}&continue={token}", pages.path, pages.limit);
        let page = self.get(&path).expect("nothing was compacted");
        pages.turn(&page);
        self.pages = Some(pages).filter(|pages| !pages.token.is_empty());
    }

    /// Do all who watch know what a list answers?
    pub fn compare(&mut self) {
        self.follow();
        while self.pages.is_some() {
            self.turn_page();
        }
        for replica in self.all.iter().chain(&self.some) {
            let items = self
                .items(&replica.path)
                .expect("what can be watched can be listed");
            assert_eq!(items, replica.objects, "{}", replica.path);
        }
    }

    /// Lets the garbage collector and its like work for a while.
    pub fn keep_house(&mut self, time: Duration) {
        self.gateway.keep_house(time);
    }

    /// Mostly an object that is there.
    fn place(&self, u: &mut Unstructured<'_>) -> Result<Place> {
        self.place_among(u, |_| true)
    }

    fn pod(&self, u: &mut Unstructured<'_>) -> Result<Place> {
        self.place_among(u, |kind| kind.kind == "Pod")
    }

    fn place_among(&self, u: &mut Unstructured<'_>, of: fn(&Kind) -> bool) -> Result<Place> {
        let kinds = self.all.iter().filter(|replica| of(replica.kind));
        let there = kinds.flat_map(|replica| replica.objects.keys().map(|key| (replica.kind, key)));
        let there: Vec<_> = there.collect();
        if there.is_empty() || u.ratio(1, 8)? {
            return Place::any(u);
        }
        let (kind, (namespace, name)) = *u.choose(&there)?;
        Ok(Place {
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
        })
    }

    /// The object as it stands, or the example where there is none.
    fn now(&self, place: &Place) -> Value {
        let there = self.replica(place).objects.get(&self.key(place));
        there
            .cloned()
            .unwrap_or_else(|| example::document(place.kind, &place.name))
    }

    fn key(&self, place: &Place) -> Key {
        let namespace = if place.kind.namespaced {
            place.namespace.clone()
        } else {
            String::new()
        };
        (namespace, place.name.clone())
    }

    fn replica(&self, place: &Place) -> &Replica {
        let of = self.all.iter().find(|replica| replica.kind == place.kind);
        of.expect("each kind is watched")
    }

    /// A write of one object, which must then stand as the answer shows it.
    fn write(&mut self, place: &Place, request: Request<Body>) {
        let dry = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("dryRun"));
        let before = self.gateway.revision();
        let reply = self.judged(request, Effect::One);
        assert!(
            !dry || self.gateway.revision() == before,
            "a dry run has written"
        );
        let Some(answer) = reply.json().filter(|_| reply.code.is_success() && !dry) else {
            return;
        };
        if answer["kind"] != place.kind.kind.as_str() {
            return;
        }
        // A write that removes the last finalizer ends a deletion, and is answered with the object as it last stood.
        let stands = (!ends_deletion(&answer)).then_some(answer.clone());
        let known = self.replica(place).objects.get(&key(&answer));
        assert_eq!(known, stands.as_ref(), "acknowledged, but not told");
        let (namespace, name) = key(&answer);
        let path = format!("{}/{name}", collection(place.kind, &namespace));
        assert_eq!(self.get(&path), stands, "acknowledged, but not read");
    }

    /// Sends a write. Watchers must have heard of whatever it has written, and of nothing else.
    fn judged(&mut self, request: Request<Body>, effect: Effect) -> Reply {
        let before = self.gateway.revision();
        let what = format!("{} {}", request.method(), request.uri());
        let reply = self.gateway.send(request);
        let written = self.gateway.revision() - before;
        let told = self.follow() as u64;
        assert_eq!(told, written, "{what}: {reply:?}");
        match effect {
            Effect::One if reply.code.is_success() => assert!(written <= 1, "{what}: {reply:?}"),
            Effect::One => assert_eq!(written, 0, "{what}: {reply:?}"),
            Effect::Many => {}
        }
        reply
    }

    /// Lets all watchers take in what they were told; returns how many writes those of everything heard of.
    fn follow(&mut self) -> usize {
        let Self {
            gateway, all, some, ..
        } = self;
        gateway.block_on(async {
            let mut told = 0;
            for replica in all {
                told += replica.follow().await;
            }
            for replica in some {
                replica.follow().await;
            }
            told
        })
    }

    fn open(&self, kind: &'static Kind, path: &str) -> Option<Replica> {
        let watch = format!("{path}watch=true&timeoutSeconds=1000000");
        let request = json_request(Method::GET, &watch, String::new());
        let answer = self.gateway.block_on(self.gateway.open(request));
        let path = path.trim_end_matches(['&', '?']).to_owned();
        let opened = answer.status().is_success();
        opened.then(|| Replica::new(kind, path, answer.into_body().into_data_stream()))
    }

    fn get(&self, path: &str) -> Option<Value> {
        let reply = self
            .gateway
            .send(json_request(Method::GET, path, String::new()));
        reply
            .code
            .is_success()
            .then(|| reply.json().expect("an answer is JSON"))
    }

    fn items(&self, path: &str) -> Option<BTreeMap<Key, Value>> {
        let list = self.get(path)?;
        let items = list["items"].as_array().expect("a list has items");
        Some(items.iter().map(|item| (key(item), item.clone())).collect())
    }
}

fn request(method: Method, path: &str, content: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, content);
    request.body(body.into()).expect("the path is one")
}

/// The object, its status, or its scale.
fn part(place: &Place, u: &mut Unstructured<'_>) -> Result<&'static str> {
    let part = *u.choose(&["", "", "status", "scale"])?;
    Ok(if place.kind.has_subresource(part) {
        part
    } else {
        ""
    })
}

fn scale(place: &Place, replicas: i64) -> Value {
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": { "name": place.name },
        "spec": { "replicas": replicas },
    })
}

fn below(place: &Place, part: &str) -> String {
    match part {
        "" => place.path(),
        part => format!("{}/{part}", place.path()),
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

/// Whether nothing keeps an object whose deletion has begun: neither a finalizer nor a grace period.
fn ends_deletion(object: &Value) -> bool {
    let meta = &object["metadata"];
    let grace = meta["deletionGracePeriodSeconds"].as_i64();
    meta["deletionTimestamp"].is_string()
        && meta["finalizers"].is_null()
        && grace.unwrap_or_default() == 0
        && object["spec"]["finalizers"].is_null()
}
