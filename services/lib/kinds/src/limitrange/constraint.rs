//! The bounds of one resource in a LimitRange, with upstream's texts.

use setpoint_model::amounts::Amounts;
use setpoint_model::quantity::Amount;

/// The requests and limits of an object.
pub struct Usage {
    /// The sums of the requests, by resource.
    pub requests: Amounts,
    /// The sums of the limits, by resource.
    pub limits: Amounts,
}

/// Returns why a resource is below the minimum.
pub fn below_min(of: &str, name: &str, min: Amount, usage: &Usage) -> Option<String> {
    let what = format!("minimum {name} usage per {of} is {}", min.canonical());
    let Some(request) = usage.requests.get(name) else {
        return Some(format!("{what}.  No request is specified"));
    };
    if *request < min {
        return Some(format!("{what}, but request is {}", request.canonical()));
    }
    let limit = usage.limits.get(name).filter(|limit| **limit < min)?;
    Some(format!("{what}, but limit is {}", limit.canonical()))
}

/// Returns why a resource exceeds the maximum of limits.
pub fn above_max(of: &str, name: &str, max: Amount, usage: &Usage) -> Option<String> {
    let what = format!("maximum {name} usage per {of} is {}", max.canonical());
    let Some(limit) = usage.limits.get(name) else {
        return Some(format!("{what}.  No limit is specified"));
    };
    if *limit > max {
        return Some(format!("{what}, but limit is {}", limit.canonical()));
    }
    let request = usage.requests.get(name).filter(|request| **request > max)?;
    Some(format!("{what}, but request is {}", request.canonical()))
}

/// Returns why a resource exceeds the maximum of requests, for objects without limits.
pub fn request_above_max(of: &str, name: &str, max: Amount, usage: &Usage) -> Option<String> {
    let what = format!("maximum {name} usage per {of} is {}", max.canonical());
    let Some(request) = usage.requests.get(name) else {
        return Some(format!("{what}.  No request is specified"));
    };
    (*request > max).then(|| format!("{what}, but request is {}", request.canonical()))
}

/// Returns why the limit of a resource exceeds its request by more than the ratio.
pub fn above_ratio(of: &str, name: &str, ratio: Amount, usage: &Usage) -> Option<String> {
    let set = |amounts: &Amounts| {
        let amount = amounts.get(name).copied();
        amount.filter(|amount| *amount != Amount::ZERO)
    };
    let max = ratio.canonical();
    let what = format!("{name} max limit to request ratio per {of} is {max}");
    let Some(request) = set(&usage.requests) else {
        return Some(format!(
            "{what}, but no request is specified or request is 0"
        ));
    };
    let Some(limit) = set(&usage.limits) else {
        return Some(format!("{what}, but no limit is specified or limit is 0"));
    };
    let found = quotient(limit, request);
    (found > number(ratio)).then(|| format!("{what}, but provided ratio is {found:.6}"))
}

/// Returns the quotient of two amounts, to the precision that upstream compares at: thousandths, unless they are too
/// large.
pub(crate) fn quotient(amount: Amount, by: Amount) -> f64 {
    const LARGEST: i64 = i64::MAX / 1000;
    let exact = amount.value() <= LARGEST && by.value() <= LARGEST;
    match exact {
        true => float(amount.millis()) / float(by.millis()),
        false => float(amount.value()) / float(by.value()),
    }
}

/// Returns an amount as a number.
pub fn number(amount: Amount) -> f64 {
    quotient(amount, Amount::from_value(1))
}

#[allow(
    clippy::cast_precision_loss,
    reason = "ratios are compared as floating-point numbers, as upstream does"
)]
fn float(number: i64) -> f64 {
    number as f64
}
