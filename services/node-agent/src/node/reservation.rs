//! Reserves resources of a node for the system: capacity − reservations = allocatable.

use std::collections::BTreeMap;

use setpoint_model::quantity::Amount;
use setpoint_proto::meta::Quantity;

use super::Settings;

/// The resources that can be reserved.
const RESERVABLE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Amounts by the name of their resource.
type Amounts = BTreeMap<String, Amount>;

/// Reads reservations, written as the kubelet's flags write them: `cpu=100m,memory=256Mi`.
///
/// # Errors
/// In the kubelet's words if a resource cannot be reserved, or not in this amount.
pub fn parse(text: &str) -> Result<Amounts, String> {
    let parts = text.split(',').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    let mut amounts = Amounts::new();
    for part in parts {
        let (name, amount) = part
            .split_once('=')
            .ok_or_else(|| format!("{part:?} is not of the form <resource>=<quantity>"))?;
        if amounts
            .insert(name.to_owned(), amount_of(name, amount)?)
            .is_some()
        {
            return Err(format!("{name:?} is reserved twice"));
        }
    }
    Ok(amounts)
}

fn amount_of(name: &str, text: &str) -> Result<Amount, String> {
    if !RESERVABLE.contains(&name) {
        return Err(format!("cannot reserve {name:?} resource"));
    }
    let amount = Amount::parse(text).map_err(|error| {
        format!("failed to parse quantity {text:?} for {name:?} resource: {error}")
    })?;
    match amount < Amount::ZERO {
        true => Err(format!(
            "resource quantity for {name:?} cannot be negative: {text}"
        )),
        false => Ok(amount),
    }
}

/// Returns what Pods can be given of the resources of a node: all but what the settings reserve for the system and for
/// Kubernetes, and what the hard thresholds of eviction keep free.
///
/// # Errors
/// In the kubelet's words if more is reserved than there is.
pub fn allocatable(
    settings: &Settings,
    capacity: &BTreeMap<String, Quantity>,
) -> Result<BTreeMap<String, Quantity>, String> {
    let (system, kube) = (
        parse(&settings.system_reserved)?,
        parse(&settings.kube_reserved)?,
    );
    let mut problems = Vec::new();
    let mut allocatable = BTreeMap::new();
    for (name, quantity) in capacity {
        let total = Amount::parse(&quantity.string).unwrap_or(Amount::ZERO);
        let of = |amounts: &Amounts| amounts.get(name).copied().unwrap_or(Amount::ZERO);
        let reserved = of(&system) + of(&kube) + settings.eviction.reserved(name, total);
        if reserved > total {
            problems.push(format!(
                "Resource {name:?} has a reservation of {} but capacity of {}. Expected capacity >= reservation.",
                reserved.canonical(),
                quantity.string
            ));
        }
        let left = match reserved == Amount::ZERO {
            true => quantity.clone(),
            false => Quantity::new((total - reserved).canonical()),
        };
        allocatable.insert(name.clone(), left);
    }
    match problems.is_empty() {
        true => Ok(allocatable),
        false => Err(format!(
            "invalid Node Allocatable configuration. {}",
            problems.join(" ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(kube: &str, system: &str, hard: &str) -> Settings {
        let mut settings = Settings {
            kube_reserved: kube.into(),
            system_reserved: system.into(),
            ..Settings::default()
        };
        settings.eviction.hard = hard.into();
        settings
    }

    /// Returns the allocatable resources of a node, as text.
    fn of(settings: &Settings) -> Result<String, String> {
        let capacity = [
            ("cpu", "4"),
            ("memory", "8192Ki"),
            ("ephemeral-storage", "1000Mi"),
            ("pods", "110"),
        ];
        let capacity = capacity.map(|(name, amount)| (name.to_owned(), Quantity::new(amount)));
        let amounts = allocatable(settings, &capacity.into())?;
        let texts =
            ["cpu", "memory", "ephemeral-storage", "pods"].map(|name| &amounts[name].string);
        Ok(texts.map(String::as_str).join(" "))
    }

    #[test]
    fn reservations_and_hard_thresholds_are_not_allocatable() {
        let untouched = of(&settings("", "", ""));
        assert_eq!(untouched.as_deref(), Ok("4 8192Ki 1000Mi 110"));
        let reserved = settings(
            "cpu=100m,memory=1Mi",
            "cpu=0.4, ephemeral-storage=100Mi",
            "memory.available<2Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%",
        );
        assert_eq!(of(&reserved).as_deref(), Ok("3500m 5Mi 800Mi 110"));
    }

    #[test]
    fn soft_thresholds_reserve_nothing() {
        let mut settings = settings("", "", "");
        settings.eviction.soft = "memory.available<1Mi".into();
        settings.eviction.soft_grace_period = "memory.available=1m".into();
        assert_eq!(of(&settings).as_deref(), Ok("4 8192Ki 1000Mi 110"));
    }

    #[test]
    fn all_of_a_resource_may_be_reserved_and_not_more() {
        let all = of(&settings("cpu=3", "cpu=1", "")).unwrap();
        assert!(all.starts_with("0 "), "{all}");
        let error = of(&settings(
            "cpu=3",
            "cpu=1001m,memory=8Mi",
            "memory.available<1Mi",
        ));
        let expected = "invalid Node Allocatable configuration. \
            Resource \"cpu\" has a reservation of 4001m but capacity of 4. Expected capacity >= reservation. \
            Resource \"memory\" has a reservation of 9Mi but capacity of 8192Ki. Expected capacity >= reservation.";
        assert_eq!(error, Err(expected.to_owned()));
    }

    #[test]
    fn what_cannot_be_reserved_is_refused() {
        for (text, problem) in [
            ("pods=3", "cannot reserve \"pods\" resource"),
            ("pid=100", "cannot reserve \"pid\" resource"),
            (
                "example.com/gpu=1",
                "cannot reserve \"example.com/gpu\" resource",
            ),
            (
                "cpu=-1",
                "resource quantity for \"cpu\" cannot be negative: -1",
            ),
            ("cpu", "\"cpu\" is not of the form <resource>=<quantity>"),
            ("cpu=1,cpu=2", "\"cpu\" is reserved twice"),
        ] {
            assert_eq!(parse(text).map(drop), Err(problem.to_owned()));
        }
        let error = parse("memory=much").map(drop).unwrap_err();
        let begin = "failed to parse quantity \"much\" for \"memory\" resource: ";
        assert!(error.starts_with(begin), "{error}");
    }
}
