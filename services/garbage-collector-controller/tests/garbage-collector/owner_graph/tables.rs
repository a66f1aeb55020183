//! The plan for one object, by the states of its owners.

use std::sync::Arc;

use OwnerState::{Dangling, OutOfScope, Solid, UnknownKind, Waiting};
use setpoint_garbage_collector_controller::{
    Action, BURST, Item, Live, Owner, OwnerState, Standing, World, plan,
};
use setpoint_model::Meta;
use setpoint_proto::setpoint::{self, owner::State};

use crate::owner_graph::cluster::{FOREGROUND, ORPHAN, config_map, event_of, reference};

fn world(item: Item, states: &[OwnerState]) -> World {
    let owners = states.iter().enumerate().map(|(at, state)| Owner {
        uid: format!("owner-{at}"),
        state: *state,
    });
    World {
        meta: Meta::default(),
        kind: Default::default(),
        live: Live::Present {
            item: Arc::new(item),
            owners: owners.collect(),
            dependants: None,
        },
        standing: Standing::default(),
        foreign: Vec::new(),
    }
}

fn dependant(owners: usize) -> Item {
    let owners = (0..owners).map(|at| reference(&format!("owner-{at}"), true));
    config_map("a", owners.collect())
}

/// Returns the only planned action, in short.
fn planned(world: &World) -> String {
    let steps = plan(world).steps;
    assert!(steps.len() <= 1, "{steps:?}");
    match steps.first().map(|step| &step.action) {
        None => String::new(),
        Some(Action::Delete(_, policy)) => format!("delete {policy}"),
        Some(Action::RemoveOwners(_, owners)) => format!("remove {}", owners.join(" ")),
        Some(Action::RemoveFinalizer(_, finalizer)) => format!("remove {finalizer}"),
        Some(other) => format!("{other:?}"),
    }
}

#[test]
fn a_deletion_says_whether_an_owner_is_gone_or_waits() {
    let waits = "its owner waits for the deletion of its dependants";
    for (states, because) in [
        (&[Dangling, Dangling][..], "its owners are gone"),
        (&[Waiting], waits),
        (&[Dangling, Waiting], waits),
    ] {
        let plan = plan(&world(dependant(states.len()), states));
        assert_eq!(plan.steps[0].because, because);
    }
}

/// Checks G1, K2, F11.
#[test]
fn an_object_is_deleted_if_no_owner_is_left_and_kept_with_the_others() {
    let cases: [(&[OwnerState], &str); 10] = [
        (&[], ""),
        (&[Solid], ""),
        (&[Solid, Solid], ""),
        (&[Dangling], "delete Background"),
        (&[Waiting], "delete Background"),
        (&[Dangling, Waiting], "delete Background"),
        (&[Dangling, Solid, Waiting], "remove owner-0 owner-2"),
        (&[Dangling, UnknownKind], ""),
        (&[Dangling, OutOfScope], ""),
        (&[Dangling, Solid, OutOfScope], ""),
    ];
    for (states, expected) in cases {
        let world = world(dependant(states.len()), states);
        assert_eq!(planned(&world), expected, "{states:?}");
        let looks_again = plan(&world).again.is_some();
        assert_eq!(looks_again, states.contains(&UnknownKind), "{states:?}");
    }
}

#[test]
fn a_deletion_keeps_the_policy_that_finalizers_ask_for_and_is_in_the_foreground_between_two_that_wait()
 {
    let cases = [
        (ORPHAN, Dangling, false, "delete Orphan"),
        (FOREGROUND, Dangling, false, "delete Foreground"),
        ("other", Dangling, true, "delete Background"),
        (ORPHAN, Waiting, true, "delete Foreground"),
        ("other", Waiting, true, "delete Foreground"),
        ("other", Waiting, false, "delete Background"),
    ];
    for (finalizer, state, has_dependants, expected) in cases {
        let mut item = dependant(1);
        item.finalizers.push(finalizer.into());
        let mut world = world(item, &[state]);
        world.standing.has_dependants = has_dependants;
        assert_eq!(planned(&world), expected, "{finalizer} {state:?}");
    }
}

fn ending(finalizer: &str, dependants: Option<Vec<Item>>) -> World {
    let item = Item {
        deleting: true,
        finalizers: vec![finalizer.into()],
        ..config_map("owner-0", vec![reference("root", true)])
    };
    let mut world = world(item.clone(), &[Solid]);
    world.live = Live::Present {
        item: Arc::new(item),
        owners: Vec::new(),
        dependants,
    };
    world
}

/// Checks K2.
#[test]
fn an_owner_waits_for_the_dependants_that_block_it() {
    let mut free = dependant(1);
    free.owners[0].block_owner_deletion = None;
    let remove = "remove foregroundDeletion";
    for (dependants, expected) in [
        (None, ""),
        (Some(vec![dependant(1)]), ""),
        (Some(vec![free]), remove),
        (Some(Vec::new()), remove),
    ] {
        assert_eq!(planned(&ending(FOREGROUND, dependants)), expected);
    }
    for dependants in [None, Some(Vec::new())] {
        assert_eq!(planned(&ending("other", dependants)), "");
    }
}

/// Checks K3.
#[test]
fn an_object_in_a_cycle_blocks_no_owner_any_more() {
    let mut world = ending(FOREGROUND, None);
    world.standing.in_cycle = true;
    assert_eq!(planned(&world), "Unblock(configmaps shop/owner-0)");
}

#[test]
fn dependants_are_orphaned_before_the_finalizer_is_removed_and_not_all_at_once() {
    assert_eq!(planned(&ending(ORPHAN, Some(Vec::new()))), "remove orphan");
    let some = ending(ORPHAN, Some(vec![dependant(1)]));
    assert_eq!(planned(&some), "remove owner-0");
    assert!(plan(&some).again.is_some());
    let many = ending(ORPHAN, Some(vec![dependant(1); BURST + 1]));
    assert_eq!(plan(&many).steps.len(), BURST);
}

#[test]
fn an_object_that_was_not_read_is_read_again_and_one_that_is_gone_is_not() {
    let mut world = world(dependant(1), &[Dangling]);
    world.live = Live::Gone;
    assert_eq!((planned(&world), plan(&world).again), (String::new(), None));
    world.live = Live::Unread;
    assert_eq!(planned(&world), "");
    assert!(plan(&world).again.is_some());
}

/// Checks F11.
#[test]
fn a_reference_to_an_owner_elsewhere_is_reported() {
    let mut world = world(dependant(1), &[OutOfScope]);
    world.foreign = vec![reference("owner-0", true)];
    let steps = plan(&world).steps;
    assert!(matches!(&steps[..], [step] if matches!(step.action, Action::Report(..))));
}

#[test]
fn the_state_of_an_owner_is_that_of_the_object_that_was_read() {
    let of = |item: &Item| {
        let read = setpoint::Owner {
            state: State::Present.into(),
            object: event_of(item, false).object,
        };
        Owner::of(&reference("owner-0", true), read)
    };
    let item = config_map("owner-0", Vec::new());
    let ending = |finalizer: &str| Item {
        deleting: true,
        finalizers: vec![finalizer.into()],
        ..item.clone()
    };
    let mut kept = ending(FOREGROUND);
    kept.deleting = false;
    let present = [
        (&item, Solid),
        (&kept, Solid),
        (&ending(ORPHAN), Solid),
        (&ending(FOREGROUND), Waiting),
    ];
    for (item, state) in present {
        let uid = "owner-0".to_owned();
        assert_eq!(of(item), Owner { uid, state }, "{:?}", item.finalizers);
    }
    for (read, state) in [
        (State::Absent, Dangling),
        (State::OutOfScope, OutOfScope),
        (State::UnknownKind, UnknownKind),
        (State::Unspecified, UnknownKind),
    ] {
        let read = setpoint::Owner {
            state: read.into(),
            object: None,
        };
        assert_eq!(Owner::of(&reference("owner-0", true), read).state, state);
    }
}
