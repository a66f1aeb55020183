//! Properties of sets and of apply.

use proptest::prelude::*;

use super::compare::Comparison;
use super::*;

/// Any Deployment with some of a few fields: scalars, maps, sets, lists with keys, and atomic lists.
fn any_config() -> impl Strategy<Value = Value> {
    let labels = prop::collection::btree_map("[a-c]", "[xy]", 0..3);
    let finalizers = prop::sample::subsequence(vec!["a/a", "b/b", "c/c"], 0..3);
    let container = (
        prop::option::of("[ij]"),
        prop::option::of(prop::collection::vec("[pq]", 0..2)),
        prop::collection::btree_map("[E-F]", "[12]", 0..2),
    );
    let containers = prop::collection::btree_map("[m-o]", container, 0..3);
    let replicas = prop::option::of(0..3_i32);
    (labels, finalizers, containers, replicas).prop_map(
        |(labels, finalizers, containers, replicas)| {
            let mut config = json!({});
            if !labels.is_empty() {
                config["metadata"]["labels"] = json!(labels);
            }
            if !finalizers.is_empty() {
                config["metadata"]["finalizers"] = json!(finalizers);
            }
            if let Some(replicas) = replicas {
                config["spec"]["replicas"] = replicas.into();
            }
            let containers: Vec<Value> = containers.into_iter().map(container_of).collect();
            if !containers.is_empty() {
                config["spec"]["template"]["spec"]["containers"] = containers.into();
            }
            config
        },
    )
}

type Parts = (
    Option<String>,
    Option<Vec<String>>,
    std::collections::BTreeMap<String, String>,
);

fn container_of((name, (image, args, env)): (String, Parts)) -> Value {
    let mut container = json!({"name": name});
    if let Some(image) = image {
        container["image"] = image.into();
    }
    if let Some(args) = args {
        container["args"] = args.into();
    }
    let env: Vec<_> = env
        .into_iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    if !env.is_empty() {
        container["env"] = env.into();
    }
    container
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    let path = prop::collection::vec("[a-c]", 1..4);
    prop::collection::vec(path, 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(path.into_iter().map(PathElement::field));
        }
        set
    })
}

/// Returns an equal value in which the entries of lists with keys are sorted.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect(),
        ),
        Value::Array(entries) => {
            let mut entries: Vec<_> = entries.iter().map(sorted).collect();
            entries.sort_by_key(Value::to_string);
            entries.into()
        }
        scalar => scalar.clone(),
    }
}

fn set_of_config(world: &World, body: Value) -> FieldSet {
    set_of(world.kind, &world.config(body)).unwrap()
}

proptest! {
    #[test]
    fn a_set_round_trips(set in any_set()) {
        prop_assert_eq!(FieldSet::from_json(&set.to_json()), Ok(set));
    }

    #[test]
    fn sets_obey_the_laws_of_sets(one in any_set(), two in any_set()) {
        let both = one.intersection(&two);
        prop_assert_eq!(one.difference(&two).union(&both), one.clone());
        prop_assert_eq!(one.union(&two), two.union(&one));
        prop_assert_eq!(&both, &two.intersection(&one));
        prop_assert!(one.difference(&one).is_empty());
        prop_assert!(one.recursive_difference(&two).difference(&one.difference(&two)).is_empty());
    }

    #[test]
    fn the_fields_of_a_new_object_are_those_of_a_comparison(body in any_config(), twice: bool) {
        let world = World::deployment();
        let mut body = body;
        if twice && let Some(entries) = body.pointer_mut("/spec/template/spec/containers") {
            let copy = entries[0].clone();
            entries.as_array_mut().unwrap().push(copy);
        }
        let object = world.kind.from_json(body.to_string().as_bytes()).unwrap();
        let reset = FieldSet::default();
        let edit = Edit { kind: world.kind, manager: "one", subresource: "", now: Time::default(), reset: &reset };
        let mut compared = Managers::default();
        compared.create(&edit, &document(&*object)).unwrap();
        prop_assert_eq!(Managers::created(&edit, &*object).unwrap(), compared);
        let is_clear = Comparison::of_encoded(world.kind, &[], &object.encode()).is_ok();
        prop_assert_eq!(is_clear, !twice || body.pointer("/spec/template/spec/containers").is_none());
    }

    #[test]
    fn an_update_is_recorded_as_a_comparison_of_whole_documents(
        live in any_config(), body in any_config(), status in 0..3_i32, managers in 2..14_usize,
        by in prop::sample::select(vec!["b", "new"]),
    ) {
        const NAMES: [&str; 14] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"];
        let kind = World::deployment().kind;
        let object = |body: Value| kind.from_json(body.to_string().as_bytes()).unwrap();
        let reset = FieldSet::default();
        let edit = |manager| Edit { kind, manager, subresource: "", now: Time::default(), reset: &reset };
        let mut live = live;
        let mut old = object(live.clone());
        create(&edit("a"), &mut *old);
        prop_assume!(!old.meta().managed_fields.is_empty());
        // Each owns one annotation; the last owns the status.
        for name in &NAMES[1..managers] {
            live["metadata"]["annotations"][name] = "".into();
            if *name == NAMES[managers - 1] {
                live["status"]["readyReplicas"] = 2.into();
            }
            let mut new = object(live.clone());
            update(&edit(name), (&*old, &old.encode()), &mut *new, true);
            old = new;
        }
        let mut body = body;
        body["metadata"]["annotations"] = live["metadata"]["annotations"].clone();
        body["status"]["readyReplicas"] = status.into();
        let mut new = object(body);
        let mut compared = Managers::decode(&old.meta().managed_fields).unwrap();
        compared.update(&edit(by), &document(&*old), &document(&*new)).unwrap();
        update(&edit(by), (&*old, &old.encode()), &mut *new, true);
        prop_assert_eq!(&new.meta().managed_fields, &compared.encode());
    }

    #[test]
    fn applying_twice_changes_nothing(live in any_config(), body in any_config(), force: bool) {
        let mut world = World::deployment();
        world.update("user", live);
        if world.try_apply("one", body.clone(), force).is_ok() {
            let (live, managers) = (world.live.clone(), world.managers.clone());
            prop_assert!(!world.apply("one", body));
            prop_assert_eq!(live, world.live);
            prop_assert_eq!(managers, world.managers);
        }
    }

    #[test]
    fn the_order_of_independent_managers_does_not_matter(
        live in any_config(),
        one in any_config(),
        two in any_config(),
    ) {
        let run = |first: (&str, &Value), second: (&str, &Value)| {
            let mut world = World::deployment();
            world.update("user", live.clone());
            world.try_apply(first.0, first.1.clone(), false).ok()?;
            world.try_apply(second.0, second.1.clone(), false).ok()?;
            let owned: Vec<_> = ["one", "two", "user"].map(|name| world.owned(name)).into();
            Some((sorted(&world.live), owned))
        };
        let forward = run(("one", &one), ("two", &two));
        let backward = run(("two", &two), ("one", &one));
        if let (Some(forward), Some(backward)) = (forward, backward) {
            prop_assert_eq!(forward, backward);
        }
    }

    #[test]
    fn a_forced_apply_owns_exactly_its_fields(live in any_config(), before in any_config(), body in any_config()) {
        let mut world = World::deployment();
        world.update("user", live);
        world.try_apply("one", before, true).unwrap();
        world.try_apply("one", body.clone(), true).unwrap();
        let expected = set_of_config(&world, body.clone());
        let expected = expected.difference(&FieldSet::of_fields(&[&["apiVersion"], &["kind"]]));
        let owned = FieldSet::from_json(world.owned("one").to_string().as_bytes()).unwrap();
        prop_assert_eq!(owned, expected);
        // All that it names is as it says.
        let merged = merge::merge(shape::Structure::of(world.kind).shape(), &world.live, &world.config(body)).unwrap();
        prop_assert_eq!(merged, world.live);
    }

    #[test]
    fn a_manager_that_leaves_everything_out_leaves_no_trace(body in any_config(), other in any_config()) {
        let mut world = World::deployment();
        world.apply("two", other);
        let (live, owned) = (world.live.clone(), world.owned("two"));
        if world.try_apply("one", body, false).is_ok() {
            world.apply("one", json!({}));
            prop_assert_eq!(without_empty(&live), without_empty(&world.live));
            prop_assert_eq!(owned, world.owned("two"));
            prop_assert_eq!(world.owned("one"), Value::Null);
        }
    }

    #[test]
    fn any_configuration_is_applied_or_refused(live in any_config(), path in "[a-z]{1,3}", value in any_config()) {
        let mut world = World::deployment();
        world.update("user", live);
        let mut body = json!({"metadata": {}, "spec": {"template": value}});
        body["metadata"][path] = json!([1, null, {"a": []}]);
        let _ = world.try_apply("one", body, true);
    }
}

/// Removes empty objects and lists.
fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| *value == json!({}) || *value == json!([]) || value.is_null();
    match value {
        Value::Object(object) => {
            let inner = object
                .iter()
                .map(|(key, value)| (key.clone(), without_empty(value)));
            Value::Object(inner.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(entries) => entries.iter().map(without_empty).collect(),
        scalar => scalar.clone(),
    }
}
