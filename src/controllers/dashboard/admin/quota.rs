//! The fields of a quota in a form, as the pages of courses and people have them.

use serde_json::{Map, Value, json};

use crate::api::Quantity;
use crate::controllers::dashboard::action::entry::{Form, Input};
use crate::controllers::dashboard::texts::Problem;

/// The maximum number of characters of an amount.
const MOST_OF_AMOUNT: usize = 32;
/// An amount such as `8`, `500m` or `16Gi`.
const AMOUNT: &str = "[0-9]+([.][0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?";
/// The input of an amount.
pub const REQUIRED: Input = Input::Line { max: MOST_OF_AMOUNT, pattern: AMOUNT };
/// The input of an amount that may be empty.
pub const OPTIONAL: Input = Input::OptionalLine { max: MOST_OF_AMOUNT };
/// The input of a number of machines.
pub const MACHINES: Input = Input::Number { min: 1, max: MOST_MACHINES };
/// The maximum number of machines of a quota.
pub const MOST_MACHINES: u32 = 10_000;

/// The problems of the fields: cores, memory, disk, machines.
pub type Problems = [Problem; 4];

/// Returns the members of a quota: cores, memory and machines, and the disk unless `has_disk` is false. An empty disk is
/// removed.
///
/// # Errors
/// The problem of the first field that is not an amount.
pub fn members(
    form: &Form<'_>,
    has_disk: bool,
    [cpu, memory, disk, machines]: Problems,
) -> Result<Map<String, Value>, Problem> {
    let amount = |field: &str, problem: Problem| {
        let text = form.get(field).trim();
        let quantity: Option<Quantity> = text.parse().ok();
        let is_amount =
            text.len() <= MOST_OF_AMOUNT && quantity.is_some_and(|quantity| !quantity.is_negative());
        is_amount.then(|| Value::from(text)).ok_or(problem)
    };
    let count: Option<u32> = form.get("instances").trim().parse().ok();
    let count = count.filter(|count| (1..=MOST_MACHINES).contains(count)).ok_or(machines)?;
    let mut members = Map::new();
    members.insert("cpu".to_owned(), amount("cpu", cpu)?);
    members.insert("memory".to_owned(), amount("memory", memory)?);
    members.insert("instances".to_owned(), json!(count));
    if has_disk {
        let is_absent = form.get("disk").trim().is_empty();
        members.insert("disk".to_owned(), if is_absent { Value::Null } else { amount("disk", disk)? });
    }
    Ok(members)
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::controllers::dashboard::http::fields::Fields;

    const PROBLEMS: Problems =
        [Problem::QuotaCpu, Problem::QuotaMemory, Problem::QuotaDisk, Problem::QuotaMachines];

    fn found(fields: &str, has_disk: bool) -> Result<Value, Problem> {
        let form = Form { fields: Fields::parse(fields.as_bytes()), ..Form::default() };
        members(&form, has_disk, PROBLEMS).map(Value::from)
    }

    #[test]
    fn each_field_has_its_own_problem() {
        let quota = json!({"cpu": "8", "memory": "16Gi", "instances": 3});
        assert_eq!(found("cpu=8&memory=+16Gi+&instances=3", false), Ok(quota));
        let disk = json!({"cpu": "500m", "memory": "1Gi", "instances": 1, "disk": "100Gi"});
        assert_eq!(found("cpu=500m&memory=1Gi&instances=1&disk=100Gi", true), Ok(disk));
        let unlimited = json!({"cpu": "1", "memory": "1Gi", "instances": 1, "disk": null});
        assert_eq!(found("cpu=1&memory=1Gi&instances=1&disk=", true), Ok(unlimited));
        for (fields, problem) in [
            ("cpu=-1&memory=1Gi&instances=1", Problem::QuotaCpu),
            ("cpu=many&memory=1Gi&instances=1", Problem::QuotaCpu),
            ("cpu=1&memory=&instances=1", Problem::QuotaMemory),
            ("cpu=1&memory=1Gi&instances=0", Problem::QuotaMachines),
            ("cpu=1&memory=1Gi&instances=x", Problem::QuotaMachines),
            ("cpu=1&memory=1Gi&instances=1&disk=all", Problem::QuotaDisk),
        ] {
            assert_eq!(found(fields, true), Err(problem), "{fields}");
        }
    }
}
