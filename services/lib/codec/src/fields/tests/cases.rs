//! The cases of Kubernetes' tests of server-side apply.

use super::*;

fn web(containers: Value) -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app": "nginx"}},
        "spec": {
            "selector": {"matchLabels": {"app": "nginx"}},
            "template": {
                "metadata": {"labels": {"app": "nginx"}},
                "spec": {"containers": containers},
            },
        },
    })
}

fn replicas(count: i32) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"replicas": count}})
}

#[test]
fn a_manager_owns_exactly_what_it_applies() {
    let mut world = World::deployment();
    let container = json!({
        "name": "nginx", "image": "nginx:1.25", "args": ["a", "b"],
        "ports": [{"containerPort": 80, "name": "web"}], "env": [{"name": "A", "value": "1"}],
    });
    assert!(world.apply("kubectl", web(json!([container]))));
    let expected = json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {r#"k:{"name":"nginx"}"#: {
                    ".": {}, "f:args": {}, "f:image": {}, "f:name": {},
                    "f:env": {r#"k:{"name":"A"}"#: {".": {}, "f:name": {}, "f:value": {}}},
                    "f:ports": {r#"k:{"containerPort":80,"protocol":"TCP"}"#: {
                        ".": {}, "f:containerPort": {}, "f:name": {},
                    }},
                }}},
            },
        },
    });
    assert_eq!(world.owned("kubectl"), expected);
}

#[test]
fn a_creator_owns_its_fields_with_their_parents() {
    let mut world = World::deployment();
    world.update("kubectl-create", json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": "25%"}, "type": "RollingUpdate"},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "containers": [{"name": "nginx", "resources": {}}], "securityContext": {},
            }}},
        "status": {},
    }));
    let expected = json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {r#"k:{"name":"nginx"}"#: {".": {}, "f:name": {}, "f:resources": {}}},
                    "f:securityContext": {},
                },
            },
        },
    });
    let owned = world.owned("kubectl-create");
    assert_eq!(owned["f:metadata"], expected["f:metadata"]);
    assert_eq!(
        owned["f:spec"]["f:strategy"],
        expected["f:spec"]["f:strategy"]
    );
    assert_eq!(
        owned["f:spec"]["f:template"],
        expected["f:spec"]["f:template"]
    );
}

#[test]
fn a_change_of_a_field_of_another_manager_is_a_conflict() {
    let mut world = World::deployment();
    world.apply("one", replicas(1));
    let conflict = world.refused("two", replicas(2));
    assert_eq!(
        conflict,
        r#"Apply failed with 1 conflict: conflict with "one": .spec.replicas"#
    );
    assert_eq!(world.live["spec"]["replicas"], 1);
    world.update("three", {
        let mut live = world.live.clone();
        live["spec"]["replicas"] = 3.into();
        live["metadata"]["labels"] = json!({"a": "b"});
        live
    });
    let body = json!({"metadata": {"labels": {"a": "c"}}, "spec": {"replicas": 2}});
    let conflicts = world.refused("two", body);
    assert_eq!(
        conflicts,
        "Apply failed with 2 conflicts: conflicts with \"three\" using apps/v1:\n- .metadata.labels.a\n- .spec.replicas"
    );
}

#[test]
fn force_takes_fields_from_their_managers() {
    let mut world = World::deployment();
    world.apply("one", json!({"metadata": {"labels": {"a": "1", "b": "1"}}}));
    world
        .try_apply("two", json!({"metadata": {"labels": {"a": "2"}}}), true)
        .unwrap();
    assert_eq!(
        world.owned("one"),
        json!({"f:metadata": {"f:labels": {"f:b": {}}}})
    );
    assert_eq!(
        world.owned("two"),
        json!({"f:metadata": {"f:labels": {"f:a": {}}}})
    );
    assert_eq!(
        world.live["metadata"]["labels"],
        json!({"a": "2", "b": "1"})
    );
}

#[test]
fn equal_values_are_owned_by_all_who_apply_them() {
    let mut world = World::deployment();
    world.apply("one", replicas(1));
    assert!(!world.apply("two", replicas(1)));
    assert_eq!(world.owned("one"), world.owned("two"));
    // One of the owners leaves it.
    world.apply("one", json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(world.live["spec"]["replicas"], 1);
    world.apply("two", json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(world.live["spec"].get("replicas"), None);
}

#[test]
fn a_field_that_is_left_out_is_removed_unless_another_manager_owns_it() {
    let mut world = World::deployment();
    let ports = json!([{"containerPort": 80, "protocol": "TCP"}]);
    world.apply(
        "one",
        web(json!([{"name": "nginx", "image": "a", "ports": ports}])),
    );
    world.apply("one", web(json!([{"name": "nginx", "image": "a"}])));
    let containers = &world.live["spec"]["template"]["spec"]["containers"];
    assert_eq!(*containers, json!([{"name": "nginx", "image": "a"}]));
}

#[test]
fn an_entry_that_is_left_out_is_removed_with_what_a_controller_set_in_it() {
    let mut world = World::deployment();
    world.apply("one", web(json!([{"name": "nginx", "image": "a"}])));
    let mut live = world.live.clone();
    live["spec"]["template"]["spec"]["containers"][0]["workingDir"] = "/home".into();
    world.update("controller", live);
    world.apply("one", web(json!([{"name": "other", "image": "a"}])));
    let containers = &world.live["spec"]["template"]["spec"]["containers"];
    assert_eq!(*containers, json!([{"name": "other", "image": "a"}]));
    assert_eq!(world.owned("controller"), Value::Null);
}

#[test]
fn an_entry_of_two_appliers_stays_until_both_leave_it_out() {
    let mut world = World::deployment();
    world.apply(
        "one",
        web(json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i"}])),
    );
    world.apply(
        "two",
        json!({"spec": {"template": {"spec": {"containers": [{"name": "b", "tty": true}]}}}}),
    );
    world.apply("one", web(json!([{"name": "a", "image": "i"}])));
    let containers = &world.live["spec"]["template"]["spec"]["containers"];
    assert_eq!(
        *containers,
        json!([{"name": "a", "image": "i"}, {"name": "b", "tty": true}])
    );
}

#[test]
fn a_key_with_a_default_may_be_left_out() {
    let mut world = World::deployment();
    let ports = |name: &str, protocol: Value| {
        let mut port = json!({"containerPort": 80, "name": name});
        if !protocol.is_null() {
            port["protocol"] = protocol;
        }
        web(json!([{"name": "nginx", "image": "a", "ports": [port]}]))
    };
    world.apply("one", ports("foo", Value::Null));
    let conflict = world.refused("two", ports("bar", "TCP".into()));
    assert_eq!(
        conflict,
        r#"Apply failed with 1 conflict: conflict with "one": .spec.template.spec.containers[name="nginx"].ports[containerPort=80,protocol="TCP"].name"#
    );
    world.apply("two", ports("foo", "TCP".into()));
}

#[test]
fn atomic_lists_maps_and_objects_have_one_owner() {
    let mut world = World::of("services");
    world.apply("one", json!({"spec": {"selector": {"a": "1"}}}));
    let conflict = world.refused("two", json!({"spec": {"selector": {"b": "1"}}}));
    assert!(
        conflict.ends_with(r#"conflict with "one": .spec.selector"#),
        "{conflict}"
    );
    let mut world = World::deployment();
    world.apply(
        "one",
        json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}),
    );
    let conflict = world.refused(
        "two",
        json!({"spec": {"selector": {"matchLabels": {"b": "1"}}}}),
    );
    assert!(
        conflict.ends_with(r#"conflict with "one": .spec.selector"#),
        "{conflict}"
    );
}

#[test]
fn sets_and_maps_are_merged_by_value_and_key() {
    let mut world = World::of("configmaps");
    world.apply(
        "one",
        json!({"metadata": {"finalizers": ["a/b"]}, "data": {"x": "1"}}),
    );
    world.apply(
        "two",
        json!({"metadata": {"finalizers": ["c/d"]}, "data": {"y": "1"}}),
    );
    assert_eq!(world.live["metadata"]["finalizers"], json!(["a/b", "c/d"]));
    assert_eq!(
        world.owned("two"),
        json!({
            "f:data": {"f:y": {}}, "f:metadata": {"f:finalizers": {r#"v:"c/d""#: {}}},
        })
    );
    world.apply("one", json!({}));
    assert_eq!(world.live["metadata"]["finalizers"], json!(["c/d"]));
    assert_eq!(world.live["data"], json!({"y": "1"}));
    assert_eq!(world.names(), ["two"]);
}

#[test]
fn a_merged_list_has_the_order_of_the_configuration() {
    let entries = |names: &[&str]| {
        let entries: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"containers": entries}})
    };
    for (live, config, merged) in [
        (&["a", "b"][..], &["c"][..], &["a", "b", "c"][..]),
        (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]),
        (&["a", "b"], &["b", "x", "a"], &["b", "x", "a"]),
        (&["a", "x", "b"], &["a", "b"], &["a", "x", "b"]),
        (&[], &["b", "a"], &["b", "a"]),
        (&["x", "a"], &["a", "y"], &["x", "a", "y"]),
    ] {
        let mut world = World::of("pods");
        world.update("user", entries(live));
        world.apply("one", entries(config));
        assert_eq!(
            world.live["spec"],
            entries(merged)["spec"],
            "{live:?} {config:?}"
        );
    }
}

#[test]
fn a_configuration_that_does_not_fit_its_kind_is_refused() {
    let mut world = World::deployment();
    for (body, problem) in [
        (
            json!({"spec": {"replicaz": 1}}),
            ".spec.replicaz: field not declared in schema",
        ),
        (
            json!({"spec": {"replicas": "x"}}),
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            json!({"spec": {"paused": "x"}}),
            ".spec.paused: expected boolean, got &{x}",
        ),
        (json!({"spec": []}), ".spec: expected map, got &{[]}"),
        (
            web(json!([{"name": "a"}, {"name": "a"}])),
            r#".spec.template.spec.containers: duplicate entries for key [name="a"]"#,
        ),
        (
            web(json!([{"image": "a"}])),
            r#".spec.template.spec.containers: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)"#,
        ),
        (
            web(json!(["a"])),
            ".spec.template.spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
        (
            json!({"metadata": {"finalizers": ["a", "a"]}}),
            r#".metadata.finalizers: duplicate entries for key [="a"]"#,
        ),
    ] {
        assert_eq!(world.refused("one", body), problem);
    }
}

#[test]
fn values_of_any_form_in_a_schema_are_owned_as_a_whole() {
    let mut world = World::of("customresourcedefinitions.apiextensions.k8s.io");
    let list = json!({
        "type": "array",
        "items": {"type": "object", "additionalProperties": {"type": "string"}},
        "default": [{"a": "b"}],
    });
    let schema = json!({"type": "object", "properties": {"spec": list}});
    let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
    world.apply("one", json!({"spec": {"versions": [version]}}));
    let schema = &world.live["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["spec"], list);
}

#[test]
fn duplicates_that_an_update_has_made_are_owned_as_one() {
    let mut world = World::of("pods");
    let env = |values: Value| json!({"spec": {"containers": [{"name": "a", "env": values}]}});
    let path = |value: &str| json!({"name": "PATH", "value": value});
    world.update(
        "user",
        env(json!([{"name": "A", "value": "1"}, path("/bin"), path("/usr")])),
    );
    let of_env = &world.owned("user")["f:spec"]["f:containers"][r#"k:{"name":"a"}"#]["f:env"];
    assert_eq!(of_env[r#"k:{"name":"PATH"}"#], json!({}));
    assert_eq!(
        of_env[r#"k:{"name":"A"}"#],
        json!({".": {}, "f:name": {}, "f:value": {}})
    );
    // Others leave the duplicates alone; one that names the key replaces them.
    world.apply("one", env(json!([{"name": "B", "value": "2"}])));
    let entries = world.live["spec"]["containers"][0]["env"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(entries, 4);
    let error = world.refused("one", env(json!([path("/x")])));
    assert!(error.contains("conflict with \"user\" using v1"), "{error}");
    world
        .try_apply("one", env(json!([path("/x")])), true)
        .unwrap();
    let env = &world.live["spec"]["containers"][0]["env"];
    assert_eq!(*env, json!([{"name": "A", "value": "1"}, path("/x")]));
}

#[test]
fn times_change_with_what_a_manager_owns_or_sets() {
    let mut world = World::deployment();
    let time = |world: &World, name: &str| {
        let entries = world.managers.encode();
        let entry = entries.iter().find(|entry| entry.manager == name);
        entry.and_then(|entry| entry.time?.seconds)
    };
    world.apply("one", replicas(1));
    assert_eq!(time(&world, "one"), Some(1));
    assert!(!world.apply("one", replicas(1)));
    assert_eq!(time(&world, "one"), Some(1));
    world.apply("one", replicas(2));
    assert_eq!(time(&world, "one"), Some(3));
    world
        .try_apply(
            "two",
            json!({"spec": {"replicas": 3, "paused": true}}),
            true,
        )
        .unwrap();
    assert_eq!((time(&world, "one"), time(&world, "two")), (None, Some(4)));
    let live = world.live.clone();
    world.update("three", live);
    assert_eq!(time(&world, "three"), None);
    assert_eq!(time(&world, "two"), Some(4));
}

#[test]
fn an_update_takes_what_it_changes_and_everybody_loses_what_it_removes() {
    let mut world = World::of("configmaps");
    world.apply("one", json!({"data": {"a": "1", "b": "1", "c": "1"}}));
    world.update("two", json!({"data": {"a": "2", "b": "1"}}));
    assert_eq!(world.owned("one"), json!({"f:data": {"f:b": {}}}));
    assert_eq!(world.owned("two"), json!({"f:data": {"f:a": {}}}));
    world.update("two", json!({"data": {"b": "1"}}));
    assert_eq!(world.names(), ["one"]);
}

#[test]
fn the_oldest_updaters_are_merged() {
    let mut world = World::of("configmaps");
    let mut data = serde_json::Map::new();
    for n in 0..12 {
        data.insert(format!("k{n:02}"), "v".into());
        world.update(&format!("m{n:02}"), json!({"data": data}));
    }
    let names = world.names();
    assert_eq!(names.len(), 10);
    assert_eq!(names[..2], ["ancient-changes", "m03"]);
    let ancient = world.owned("ancient-changes");
    assert_eq!(
        ancient,
        json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}})
    );
    let entries = world.managers.encode();
    assert_eq!(entries[0].time.unwrap().seconds, Some(3));
}

#[test]
fn an_object_that_was_not_tracked_is_tracked_when_it_is_applied() {
    let mut world = World::of("configmaps");
    world.live = world.config(json!({"metadata": {"name": "a"}, "data": {"a": "1", "b": "1"}}));
    let conflict = world.refused("one", json!({"data": {"a": "2"}}));
    assert_eq!(
        conflict,
        r#"Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a"#
    );
    world.apply("one", json!({"data": {"a": "1"}}));
    assert_eq!(world.names(), ["one", "before-first-apply"]);
}

#[test]
fn kubectl_takes_what_it_has_applied_client_side() {
    let mut world = World::deployment();
    let last = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1, "paused": true}});
    let created = json!({
        "metadata": {"name": "web", "annotations": {LAST_APPLIED: last.to_string()}},
        "spec": {"replicas": 1, "paused": false},
    });
    world.update("kubectl-client-side-apply", created);
    let conflict = world.refused("other", json!({"spec": {"replicas": 2}}));
    assert!(conflict.contains("kubectl-client-side-apply"), "{conflict}");
    assert!(world.apply("kubectl", json!({"spec": {"replicas": 2}})));
    assert_eq!(world.live["spec"]["replicas"], 2);
    // The annotation says true, but somebody has set false.
    let conflict = world.refused("kubectl", json!({"spec": {"replicas": 2, "paused": true}}));
    assert!(conflict.ends_with(".spec.paused"), "{conflict}");
}

#[test]
fn nobody_owns_what_identifies_an_object_or_is_reset() {
    let mut world = World::deployment();
    let reset = FieldSet::of_fields(&[&["status"]]);
    let config = world.config(json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "1", "resourceVersion": "2"},
        "spec": {"replicas": 1}, "status": {"replicas": 1},
    }));
    let live = world.live.clone();
    let mut managers = Managers::default();
    let edit = world.edit("one", &reset);
    managers.apply(&edit, &live, &config, false).unwrap();
    assert_eq!(
        fields(&managers.encode()[0]),
        json!({"f:spec": {"f:replicas": {}}})
    );
    let mut managers = Managers::default();
    let edit = world.edit("", &reset);
    managers.create(&edit, &config).unwrap();
    let entries = managers.encode();
    assert_eq!(fields(&entries[0]), json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(
        (&*entries[0].manager, &*entries[0].operation),
        ("unknown", "Update")
    );
}

#[test]
fn entries_of_versions_that_do_not_exist_are_dropped() {
    let mut world = World::deployment();
    world.update("old", json!({"spec": {"replicas": 1}}));
    let mut entries = world.managers.encode();
    entries[0].api_version = "extensions/v1beta1".into();
    world.managers = Managers::decode(&entries).unwrap();
    world.apply("one", json!({"spec": {"replicas": 2}}));
    assert_eq!(world.names(), ["one"]);
}

#[test]
fn the_managers_of_a_scale_are_those_of_the_replicas() {
    let mut world = World::deployment();
    let scale = kinds().by_kind("autoscaling/v1", "Scale").unwrap();
    world.apply(
        "one",
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}}),
    );
    world.apply("two", json!({"metadata": {"labels": {"c": "d"}}}));
    let of_scale = of_scale(&world.managers, scale);
    let entries = of_scale.encode();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&*entries[0].manager, &*entries[0].api_version),
        ("one", "autoscaling/v1")
    );
    let same = to_parent(&world.managers, &of_scale, scale, world.kind);
    assert_eq!(same, world.managers);
    let mut taken = of_scale.clone();
    let reset = FieldSet::default();
    let edit = Edit {
        kind: scale,
        subresource: "scale",
        ..world.edit("three", &reset)
    };
    let body = |replicas: i32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}});
    let refused = taken.clone().apply(&edit, &body(1), &body(5), false);
    assert!(matches!(refused, Err(ApplyError::Conflicts(_))));
    taken.apply(&edit, &body(1), &body(5), true).unwrap();
    let parent = to_parent(&world.managers, &taken, scale, world.kind).encode();
    let shown: Vec<_> = parent
        .iter()
        .map(|one| (&*one.manager, &*one.subresource, &*one.api_version))
        .collect();
    assert_eq!(
        shown,
        [
            ("one", "", "apps/v1"),
            ("two", "", "apps/v1"),
            ("three", "scale", "apps/v1")
        ]
    );
    assert_eq!(
        fields(&parent[0]),
        json!({"f:metadata": {"f:labels": {"f:a": {}}}})
    );
    assert_eq!(fields(&parent[2]), json!({"f:spec": {"f:replicas": {}}}));
}
