//! The user of the soak: random actions, which depend on nothing but the seed and the actions before.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::workload::{Kind, NAMESPACES, Run, Shape, Workload};

/// The number of nodes that a user cordons at the same time, at most.
const CORDONED: usize = 10;
/// The number of objects of each kind, for a number of nodes.
const CAPS: [(Kind, usize); 6] = [
    (Kind::Deployment, 8),
    (Kind::ReplicaSet, 20),
    (Kind::StatefulSet, 20),
    (Kind::DaemonSet, 60),
    (Kind::Job, 4),
    (Kind::CronJob, 40),
];

/// One thing that the user does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Creates an object.
    Create(Workload),
    /// Sets its replicas.
    Scale(Workload, i64),
    /// Sets the image of its Pods.
    Reimage(Workload),
    /// Suspends or resumes a Job or CronJob.
    Suspend(Workload, bool),
    /// Creates a HorizontalPodAutoscaler for a Deployment.
    Autoscale(Workload),
    /// Deletes the HorizontalPodAutoscaler of a Deployment.
    EndAutoscaling(Workload),
    /// Deletes an object with this propagation policy.
    Delete(Workload, &'static str),
    /// Deletes what the orphaning deletion of an object has left.
    Sweep(Workload),
    /// Creates an orphaned object again.
    Adopt(Workload),
    /// Deletes one of its Pods: the one at this index, modulo their number.
    DeletePod(Workload, usize),
    /// Makes a node unschedulable, or schedulable again.
    Cordon(usize, bool),
}

impl Action {
    /// Returns what it does, and to which kind, for the report.
    pub fn name(&self) -> String {
        match self {
            Self::Create(of) => format!("create {:?}", of.kind),
            Self::Scale(of, _) => format!("scale {:?}", of.kind),
            Self::Reimage(of) => format!("re-image {:?}", of.kind),
            Self::Suspend(of, true) => format!("suspend {:?}", of.kind),
            Self::Suspend(of, false) => format!("resume {:?}", of.kind),
            Self::Autoscale(_) => "create HorizontalPodAutoscaler".to_owned(),
            Self::EndAutoscaling(_) => "delete HorizontalPodAutoscaler".to_owned(),
            Self::Delete(of, policy) => format!("delete {:?} ({policy})", of.kind),
            Self::Sweep(of) => format!("delete orphans of {:?}", of.kind),
            Self::Adopt(of) => format!("adopt orphans by {:?}", of.kind),
            Self::DeletePod(of, _) => format!("delete Pod of {:?}", of.kind),
            Self::Cordon(_, true) => "cordon Node".to_owned(),
            Self::Cordon(_, false) => "uncordon Node".to_owned(),
        }
    }
}

/// A generator of actions, and what they have declared so far.
pub struct User {
    rng: StdRng,
    nodes: usize,
    slices: usize,
    names: u64,
    /// What should exist.
    pub declared: Vec<Workload>,
    orphaned: Vec<Workload>,
    cordoned: Vec<usize>,
}

impl User {
    /// Returns a user of a cluster with this number of nodes, which are labelled with `slices` slices.
    pub fn new(seed: u64, nodes: usize, slices: usize) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            nodes,
            slices,
            names: 0,
            declared: Vec::new(),
            orphaned: Vec::new(),
            cordoned: Vec::new(),
        }
    }

    /// Returns the next action, and assumes that it is carried out.
    pub fn next(&mut self) -> Action {
        loop {
            let action = match self.rng.random_range(0..100) {
                0..30 => self.create(),
                30..45 => self.scale(),
                45..57 => self.reimage(),
                57..67 => self.delete(),
                67..72 => self.orphans(),
                72..86 => self.delete_pod(),
                86..92 => self.suspend(),
                92..96 => self.autoscale(),
                _ => self.cordon(),
            };
            if let Some(action) = action {
                return action;
            }
        }
    }

    /// Returns the actions after which the cluster comes to rest: nothing is suspended but CronJobs, which all are, and
    /// there are no orphans.
    pub fn wind_down(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        for workload in &mut self.declared {
            let suspended = match &mut workload.shape {
                Shape::Run(run) if run.suspended => &mut run.suspended,
                Shape::EveryMinute { suspended, .. } if !*suspended => suspended,
                _ => continue,
            };
            *suspended = !*suspended;
            let suspended = *suspended;
            actions.push(Action::Suspend(workload.clone(), suspended));
        }
        actions.extend(self.orphaned.drain(..).map(Action::Sweep));
        let cordoned = self.cordoned.drain(..);
        actions.extend(cordoned.map(|node| Action::Cordon(node, false)));
        actions
    }

    /// Creates an object, or deletes the oldest one of its kind if there are enough.
    fn create(&mut self) -> Option<Action> {
        let (kind, share) = CAPS[self.rng.random_range(0..CAPS.len())];
        let cap = (self.nodes / share).max(1);
        let mut of_kind = self.declared.iter();
        let oldest = of_kind.position(|one| one.kind == kind && !has_autoscaler(one));
        if self.declared.iter().filter(|one| one.kind == kind).count() >= cap {
            let oldest = self.declared.remove(oldest?);
            return Some(Action::Delete(oldest, "Background"));
        }
        self.names += 1;
        let workload = Workload {
            kind,
            namespace: NAMESPACES[self.rng.random_range(0..NAMESPACES.len())],
            name: format!("{}-{}", format!("{kind:?}").to_lowercase(), self.names),
            image: 1,
            shape: self.shape(kind),
        };
        self.declared.push(workload.clone());
        Some(Action::Create(workload))
    }

    fn shape(&mut self, kind: Kind) -> Shape {
        match kind {
            Kind::Deployment => {
                let load = self.one_in(3).then(|| self.rng.random_range(100..600));
                Shape::Replicas {
                    replicas: Some(self.replicas()),
                    strategy: self.pick(["RollingUpdate", "RollingUpdate", "Recreate"]),
                    load: load.map(|load| (load, false)),
                }
            }
            Kind::ReplicaSet | Kind::StatefulSet => Shape::Replicas {
                replicas: Some(self.replicas()),
                strategy: self.pick(["OrderedReady", "Parallel"]),
                load: None,
            },
            Kind::DaemonSet => Shape::Slice(self.rng.random_range(0..self.slices)),
            Kind::Job => Shape::Run(self.run()),
            Kind::CronJob => Shape::EveryMinute {
                concurrency: self.pick(["Allow", "Forbid", "Replace"]),
                suspended: false,
            },
        }
    }

    fn run(&mut self) -> Run {
        let failing = self.one_in(4).then(|| self.rng.random_range(0..3));
        // One Pod after the other fails, so that their number is known.
        let single = failing.is_some();
        Run {
            completions: if single {
                1
            } else {
                self.rng.random_range(1..9)
            },
            parallelism: if single {
                1
            } else {
                self.rng.random_range(1..5)
            },
            indexed: self.one_in(3),
            failing,
            suspended: self.one_in(6),
            ttl: self.one_in(5),
            seconds: self.rng.random_range(0..6),
        }
    }

    fn replicas(&mut self) -> i64 {
        self.rng.random_range(0..9)
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.rng.random_range(0..n) == 0
    }

    fn pick<const N: usize>(&mut self, of: [&'static str; N]) -> &'static str {
        of[self.rng.random_range(0..N)]
    }

    /// Returns any declared workload that fits.
    fn any(&mut self, fits: impl Fn(&Workload) -> bool) -> Option<&mut Workload> {
        let fitting = self.declared.iter().enumerate();
        let fitting: Vec<_> = fitting.filter(|(_, one)| fits(one)).collect();
        let (index, _) = *fitting.get(self.rng.random_range(0..fitting.len().max(1)))?;
        self.declared.get_mut(index)
    }

    fn scale(&mut self) -> Option<Action> {
        let wanted = self.replicas();
        let workload = self.any(|one| !has_autoscaler(one) && is_replicated(one))?;
        if let Shape::Replicas { replicas, .. } = &mut workload.shape {
            *replicas = Some(wanted);
        }
        Some(Action::Scale(workload.clone(), wanted))
    }

    fn reimage(&mut self) -> Option<Action> {
        let kinds = [Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet];
        let workload = self.any(|one| kinds.contains(&one.kind))?;
        // Every third change is an undo.
        workload.image = match workload.image % 3 {
            0 => workload.image - 1,
            _ => workload.image + 1,
        };
        Some(Action::Reimage(workload.clone()))
    }

    fn delete(&mut self) -> Option<Action> {
        let policy = self.pick(["Background", "Foreground", "Orphan"]);
        let workload = self.any(|one| !has_autoscaler(one))?.clone();
        self.declared.retain(|one| one.name != workload.name);
        if policy == "Orphan" {
            self.orphaned.push(workload.clone());
        }
        Some(Action::Delete(workload, policy))
    }

    fn orphans(&mut self) -> Option<Action> {
        let workload = self.orphaned.pop()?;
        // Pods of a Job that another Job of the name would adopt have succeeded already.
        let adopts = !matches!(workload.kind, Kind::Job | Kind::CronJob);
        if !adopts || self.one_in(2) {
            return Some(Action::Sweep(workload));
        }
        self.declared.push(workload.clone());
        Some(Action::Adopt(workload))
    }

    fn delete_pod(&mut self) -> Option<Action> {
        let index = self.rng.random_range(0..1000);
        let workload = self.any(|one| !matches!(one.kind, Kind::Job | Kind::CronJob))?;
        Some(Action::DeletePod(workload.clone(), index))
    }

    fn suspend(&mut self) -> Option<Action> {
        let workload = self.any(|one| match &one.shape {
            Shape::Run(run) => !run.ttl,
            shape => matches!(shape, Shape::EveryMinute { .. }),
        })?;
        let suspended = match &mut workload.shape {
            Shape::Run(run) => &mut run.suspended,
            Shape::EveryMinute { suspended, .. } => suspended,
            _ => return None,
        };
        *suspended = !*suspended;
        let suspended = *suspended;
        Some(Action::Suspend(workload.clone(), suspended))
    }

    fn autoscale(&mut self) -> Option<Action> {
        let workload =
            self.any(|one| matches!(one.shape, Shape::Replicas { load: Some(_), .. }))?;
        let Shape::Replicas {
            replicas,
            load: Some((_, autoscaled)),
            ..
        } = &mut workload.shape
        else {
            return None;
        };
        *autoscaled = !*autoscaled;
        if *autoscaled {
            // An autoscaler does nothing for a Deployment of no replicas.
            return match replicas {
                Some(0) => {
                    *autoscaled = false;
                    *replicas = Some(1);
                    Some(Action::Scale(workload.clone(), 1))
                }
                _ => Some(Action::Autoscale(workload.clone())),
            };
        }
        *replicas = None;
        Some(Action::EndAutoscaling(workload.clone()))
    }

    fn cordon(&mut self) -> Option<Action> {
        if self.cordoned.len() >= CORDONED.min(self.nodes / 2) {
            return Some(Action::Cordon(self.cordoned.remove(0), false));
        }
        let node = self.rng.random_range(0..self.nodes);
        if self.cordoned.contains(&node) {
            return None;
        }
        self.cordoned.push(node);
        Some(Action::Cordon(node, true))
    }
}

fn is_replicated(workload: &Workload) -> bool {
    matches!(workload.shape, Shape::Replicas { .. })
}

fn has_autoscaler(workload: &Workload) -> bool {
    matches!(
        workload.shape,
        Shape::Replicas {
            load: Some((_, true)),
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_determines_all_actions() {
        let actions = |seed| {
            let mut user = User::new(seed, 200, 10);
            (0..500)
                .map(|_| format!("{:?}", user.next()))
                .collect::<Vec<_>>()
        };
        assert_eq!(actions(1), actions(1));
        assert_ne!(actions(1), actions(2));
    }

    #[test]
    fn the_number_of_objects_is_bounded_and_every_kind_of_action_occurs() {
        let mut user = User::new(7, 200, 10);
        let names: BTreeSet<_> = (0..5000).map(|_| user.next().name()).collect();
        assert!(user.declared.len() <= 25 + 10 + 10 + 3 + 50 + 5);
        for name in [
            "adopt orphans by Deployment",
            "delete Job (Orphan)",
            "resume Job",
        ] {
            assert!(names.contains(name), "{names:?}");
        }
        let rest = user.wind_down();
        assert!(
            rest.iter()
                .any(|action| matches!(action, Action::Cordon(_, false)))
        );
        assert!(user.orphaned.is_empty() && user.cordoned.is_empty());
    }
}
