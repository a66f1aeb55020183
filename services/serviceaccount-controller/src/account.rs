//! The serviceaccount-controller: creates the account of Pods that name none.

use setpoint_controller::client::ListOptions;
use setpoint_controller::{
    Client, Controller, Hosted, Informer, Inputs, ObjectRef, Plan, Reader, Receipt, Reconciler,
    Whole,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{Namespace, ServiceAccount};
use setpoint_proto::{ApiError, Resource as _};

use crate::{NamespaceView, namespace_of, unless_exists};

const NAME: &str = "default";

/// The reconciler of namespaces.
pub struct Accounts {
    namespaces: Reader<NamespaceView>,
    accounts: Reader<Whole<ServiceAccount>>,
}

/// Everything that the decision about one namespace depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The namespace.
    pub namespace: Meta,
    /// Whether it has the account.
    pub has_account: bool,
}

/// A write of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the account.
    Create,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "serviceaccount-controller",
    resource: Namespace::RESOURCE,
    run: |replica, settings, ()| {
        Box::pin(async move {
            let accounts = replica.client.informer().only(selection());
            let namespaces = replica.informer();
            let controller = controller(namespaces, accounts, |it| replica.controller(it));
            replica.run(controller, settings).await
        })
    },
};

/// Selects the accounts that the controller creates.
pub fn selection() -> ListOptions {
    ListOptions {
        fields: format!("metadata.name={NAME}"),
        ..ListOptions::default()
    }
}

/// Returns the controller over these informers; `new` makes it of the reconciler.
pub fn controller(
    namespaces: Informer<NamespaceView>,
    accounts: Informer<Whole<ServiceAccount>>,
    new: impl FnOnce(Accounts) -> Controller<Accounts>,
) -> Controller<Accounts> {
    let reconciler = Accounts {
        namespaces: namespaces.reader(),
        accounts: accounts.reader(),
    };
    new(reconciler)
        .for_(namespaces)
        .watches(accounts, |account| Some(namespace_of(&account.meta.key)))
}

/// Plans for one namespace.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if !world.namespace.deleting && !world.has_account {
        let because = "every namespace has the account of Pods that name none";
        plan.step(Action::Create, because);
    }
    plan
}

impl Reconciler for Accounts {
    type Object = Namespace;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        let namespace = self.namespaces.get(key)?.meta.clone();
        let account = self.accounts.get(&Key::new(&key.name, NAME));
        Some(World {
            namespace,
            has_account: account.is_some(),
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.namespace
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, _: &Action) -> Option<ObjectRef> {
        let account = Key::new(&world.namespace.key.name, NAME);
        Some(account.in_resource(ServiceAccount::RESOURCE))
    }

    async fn act(&self, client: &Client, world: &World, _: &Action) -> Result<Receipt, ApiError> {
        let mut account = ServiceAccount::default();
        account
            .metadata
            .namespace
            .clone_from(&world.namespace.key.name);
        NAME.clone_into(&mut account.metadata.name);
        unless_exists(client.create(&account).await)
    }
}
