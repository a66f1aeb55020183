//! The objects that every namespace has, over a gateway in the same process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use setpoint_controller::{
    Client, Controller, QueueHandle, Receipt, Reconciler as _, View as _, Whole, client,
};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{ConfigMap, Namespace, ServiceAccount};
use setpoint_proto::{Reason, Resource};
use setpoint_serviceaccount_controller::root_ca::Publishing;
use setpoint_serviceaccount_controller::{NamespaceView, account, root_ca};
use tempfile::NamedTempFile;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

const NAMESPACE: &str = "shop";
const ROOT_CA: &str = "kube-root-ca.crt";
const BUNDLE: &str = "-----BEGIN CERTIFICATE-----\n";

struct Fixture {
    client: Client,
    _gateway: InProcess,
    /// The file of the CA bundle.
    bundle: NamedTempFile,
    _controllers: DropGuard,
}

/// Starts a gateway with a namespace.
async fn gateway() -> (InProcess, Client) {
    let gateway = in_process::start().await;
    let settings = client::Settings {
        address: gateway.url.clone(),
        ..Default::default()
    };
    let client = Client::connect(&settings, "serviceaccount-controller").unwrap();
    let mut namespace = Namespace::default();
    namespace.metadata.name = NAMESPACE.into();
    client.create(&namespace).await.unwrap();
    (gateway, client)
}

impl Fixture {
    /// Starts a gateway with a namespace, and both controllers.
    async fn start() -> Self {
        let (gateway, client) = gateway().await;
        let stop = CancellationToken::new();
        let accounts = client.informer().only(account::selection());
        let new = |it| Controller::new("serviceaccount-controller", it, client.clone()).unelected();
        let accounts = account::controller(client.informer(), accounts, new);
        tokio::spawn(accounts.run("serviceaccount-controller-0", stop.clone()));
        let published = client.informer().only(root_ca::selection());
        let new = |it| Controller::new("root-ca", it, client.clone()).unelected();
        let (bundle, followed) = watch::channel(BUNDLE.into());
        let (namespaces, queue) = (client.informer(), QueueHandle::default());
        let all = namespaces.reader();
        let publisher = root_ca::controller(namespaces, published, followed, new);
        let publisher = publisher.queue(&queue);
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), BUNDLE).unwrap();
        let publishing = Publishing {
            root_ca_file: file.path().to_owned(),
        };
        let following = async move {
            let changed = || {
                all.for_each(|namespace: &NamespaceView, _| {
                    queue.add(namespace.meta.key.clone(), None);
                });
            };
            root_ca::follow(&publishing, bundle, changed).await;
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(following));
        tokio::spawn(publisher.run("root-ca-0", stop.clone()));
        Self {
            client,
            bundle: file,
            _gateway: gateway,
            _controllers: stop.drop_guard(),
        }
    }

    /// Waits for an object of the namespace that is as wanted.
    async fn seen<T: Resource>(&self, wanted: impl Fn(&T) -> bool) -> T {
        let (changed, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let wake = changed.clone();
        let informer = self.client.informer::<Whole<T>>();
        let informer = informer.on_event(move |_| wake.notify_one());
        let reader = informer.reader();
        let _stop = stop.clone().drop_guard();
        tokio::spawn(informer.run(stop));
        let seen = async {
            loop {
                let all = reader.in_namespace(NAMESPACE);
                if let Some(found) = all.iter().find(|view| wanted(&view.object)) {
                    return found.object.clone();
                }
                changed.notified().await;
            }
        };
        timeout(Duration::from_secs(60), seen).await.unwrap()
    }

    async fn delete<T: Resource>(&self, name: &str) {
        let key = Key::new(NAMESPACE, name);
        let deleted = self.client.delete::<T>(&key, Default::default(), None);
        deleted.await.unwrap();
    }
}

#[tokio::test]
async fn the_default_account_of_a_namespace_is_created_and_restored() {
    let fixture = Fixture::start().await;
    let is_default = |account: &ServiceAccount| account.metadata.name == "default";
    let first = fixture.seen(is_default).await;
    fixture.delete::<ServiceAccount>("default").await;
    let uid = first.metadata.uid;
    let is_new = |account: &ServiceAccount| is_default(account) && account.metadata.uid != uid;
    fixture.seen(is_new).await;
}

/// Checks K18: as in upstream's test `should guarantee kube-root-ca.crt exist in any namespace`.
#[tokio::test]
async fn the_ca_bundle_of_a_namespace_is_created_restored_and_corrected() {
    let fixture = Fixture::start().await;
    let is_it = |map: &ConfigMap| map.metadata.name == ROOT_CA;
    let first = fixture.seen(is_it).await;
    assert_eq!(first.data["ca.crt"], BUNDLE);
    assert!(first.metadata.annotations["kubernetes.io/description"].starts_with("Contains a CA"));

    fixture.delete::<ConfigMap>(ROOT_CA).await;
    let uid = first.metadata.uid.clone();
    let is_new = |map: &ConfigMap| is_it(map) && map.metadata.uid != uid;
    let second = fixture.seen(is_new).await;
    let patch = json!({"data": {"ca.crt": "wrong", "other": ""}});
    let key = Key::new(NAMESPACE, ROOT_CA);
    let wrong = fixture.client.patch::<ConfigMap>(&key, "", patch).await;
    let wrong = wrong.unwrap().object().unwrap().metadata.resource_version;
    let is_corrected =
        |map: &ConfigMap| map.data == first.data && map.metadata.resource_version != wrong;
    let is_third = |map: &ConfigMap| is_it(map) && is_corrected(map);
    let corrected = fixture.seen(is_third).await;
    assert_eq!(corrected.metadata.uid, second.metadata.uid);
}

/// The caches may lag behind.
#[tokio::test]
async fn what_exists_and_what_has_lost_its_namespace_is_not_created() {
    let (_gateway, client) = gateway().await;
    let new = |it| Controller::new("serviceaccount-controller", it, client.clone()).unelected();
    let accounts = account::controller(client.informer(), client.informer(), new).reconciler();
    let create = async |namespace: &str| {
        let world = account::World {
            namespace: Meta {
                key: Key::new("", namespace),
                ..Meta::default()
            },
            has_account: false,
        };
        let created = accounts.act(&client, &world, &account::Action::Create);
        created.await.map_err(|error| error.reason)
    };
    assert_ne!(create(NAMESPACE).await, Ok(Receipt::none()));
    assert_eq!(create(NAMESPACE).await, Ok(Receipt::none()));
    assert_eq!(create("gone").await, Ok(Receipt::none()));
    let key = Key::new("", NAMESPACE);
    let deleted = client.delete::<Namespace>(&key, Default::default(), None);
    deleted.await.unwrap();
    let key = Key::new(NAMESPACE, "default");
    let deleted = client.delete::<ServiceAccount>(&key, Default::default(), None);
    deleted.await.unwrap();
    assert_eq!(create(NAMESPACE).await, Err(Reason::Forbidden));
}

#[test]
fn nothing_is_created_in_a_namespace_that_is_being_deleted() {
    for deleting in [false, true] {
        let namespace = Meta {
            deleting,
            ..Meta::default()
        };
        let world = account::World {
            namespace: namespace.clone(),
            has_account: false,
        };
        assert_eq!(account::plan(&world).is_empty(), deleting);
        let world = root_ca::World {
            namespace,
            published: None,
            bundle: BUNDLE.into(),
        };
        assert_eq!(root_ca::plan(&world).is_empty(), deleting);
    }
}

#[test]
fn a_ca_bundle_is_corrected_unless_its_data_is_right_and_it_has_a_description() {
    type Data<'a> = &'a [(&'a str, &'a str)];
    // The data, the description, and whether it is corrected.
    let cases: [(Data<'_>, Option<&str>, bool); 6] = [
        (&[("ca.crt", BUNDLE)], Some("of others"), false),
        (&[("ca.crt", BUNDLE)], Some(""), true),
        (&[("ca.crt", BUNDLE)], None, true),
        (&[("ca.crt", "wrong")], Some("of others"), true),
        (&[("ca.crt", BUNDLE), ("b", "")], Some("of others"), true),
        (&[], None, true),
    ];
    for (data, description, corrected) in cases {
        let mut map = ConfigMap::default();
        let data = data.iter().map(|(key, value)| (*key, *value));
        map.data = data
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        let description = description.map(|text| ("kubernetes.io/description".into(), text.into()));
        map.metadata.annotations.extend(description);
        let world = root_ca::World {
            namespace: Meta::default(),
            published: Some(Arc::new(Whole::of(map))),
            bundle: BUNDLE.into(),
        };
        let steps = root_ca::plan(&world).steps;
        let actions: Vec<_> = steps.iter().map(|step| step.action).collect();
        let expected: &[_] = if corrected {
            &[root_ca::Action::Correct]
        } else {
            &[]
        };
        assert_eq!(actions, expected, "{:?}", world.published);
    }
}

#[test]
fn only_the_objects_that_the_controllers_keep_are_watched() {
    assert_eq!(account::selection().fields, "metadata.name=default");
    let published = root_ca::selection();
    assert_eq!(published.fields, "metadata.name=kube-root-ca.crt");
}

/// During a change of the CA, Pods trust both.
#[tokio::test]
async fn a_ca_bundle_that_changes_is_published_again() {
    let fixture = Fixture::start().await;
    let has = |bundle: String| {
        move |map: &ConfigMap| map.metadata.name == ROOT_CA && map.data["ca.crt"] == bundle
    };
    fixture.seen(has(BUNDLE.to_owned())).await;
    std::fs::write(fixture.bundle.path(), "half").unwrap();
    let both = [BUNDLE, BUNDLE].concat();
    std::fs::write(fixture.bundle.path(), &both).unwrap();
    fixture.seen(has(both)).await;
}

#[test]
fn a_ca_bundle_has_certificates() {
    let of = |path: &std::path::Path| root_ca::Publishing {
        root_ca_file: path.to_owned(),
    };
    assert_eq!(root_ca::Publishing::default().bundle().unwrap(), "");
    for path in ["/nonexistent/ca.crt", "/dev/null"] {
        assert!(of(path.as_ref()).bundle().is_err(), "{path}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), BUNDLE).unwrap();
    assert_eq!(of(file.path()).bundle().unwrap(), BUNDLE);
}
