//! The cost of a Template: the resources of one machine, and those that a whole class reserves.

use super::choices::{Amounts, Room};
use crate::api::Quantity;
use crate::api::resources::Resources;
use crate::api::template::TemplateSpec;
use crate::api::usage::{Measure, Share, size};

/// The cost of a Template.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The resources that a machine uses of the quota of its user.
    pub machine: Vec<Share>,
    /// The resources that the machines of all students reserve on the nodes.
    pub class: Vec<Need>,
    /// The number of students.
    pub students: usize,
}

/// A resource that a class reserves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The resource.
    pub measure: Measure,
    /// The amount.
    pub amount: Quantity,
    /// The amount that is free now; `None` if it is not known.
    pub free: Option<Quantity>,
}

impl Need {
    /// Whether less is free.
    pub fn is_short(&self) -> bool {
        self.free.as_ref().is_some_and(|free| *free < self.amount)
    }
}

impl Cost {
    /// Returns the cost for a number of students, as far as it is known.
    pub fn of(spec: &TemplateSpec, students: Option<usize>, room: Option<&Room>) -> Self {
        let students = students.unwrap_or_default();
        let factor = i64::try_from(students).unwrap_or(i64::MAX);
        let mut reserved = Amounts::new();
        let of_environments =
            spec.environment_list.iter().filter_map(|environment| Resources::of(environment).ok());
        for (name, amount) in of_environments.flat_map(|resources| resources.requests()) {
            let sum = reserved.entry(name).or_default();
            *sum = sum.plus(&amount);
        }
        let free = room.and_then(|room| room.free.as_ref());
        let need = |(name, amount): (String, Quantity)| {
            let free = free.map(|free| free.get(&name).cloned().unwrap_or_default());
            let measure = match name.as_str() {
                "cpu" => Measure::Cpu,
                "memory" => Measure::Memory,
                _ => Measure::Other(name),
            };
            Need { measure, amount: amount.times(factor), free }
        };
        let class = reserved.into_iter().filter(|(_, amount)| !amount.is_zero() && factor > 1).map(need);
        Self { machine: size(spec), class: class.collect(), students }
    }
}

#[cfg(test)]
mod unit_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_class_reserves_the_requests_of_each_machine() {
        let spec: TemplateSpec = serde_json::from_value(json!({"environmentList": [
            {"name": "a", "environmentType": "Container", "image": "x", "resources": {
                "cpu": 4, "reservedCPUPercentage": 50, "memory": "1Gi", "otherResources": {"nvidia.com/gpu": "1"}}},
            {"name": "b", "environmentType": "Container", "image": "x", "resources": {
                "cpu": 1, "reservedCPUPercentage": 10, "memory": "1Gi"}},
        ]}))
        .expect("a spec");
        let free = [("cpu", "160"), ("memory", "512Gi")];
        let free: Amounts = free
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text.parse().expect("a quantity")))
            .collect();
        let room = Room { allocatable: Amounts::new(), free: Some(free) };
        let texts = |cost: &Cost| -> Vec<String> {
            let one = |need: &Need| {
                let free = need.free.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
                format!("{} {} of {free}, short: {}", need.measure, need.amount, need.is_short())
            };
            cost.class.iter().map(one).collect()
        };
        let cost = Cost::of(&spec, Some(100), Some(&room));
        let machine: Vec<String> = cost.machine.iter().map(ToString::to_string).collect();
        assert_eq!(machine, ["CPU (5)", "Memory (2Gi)", "nvidia.com/gpu (1)"]);
        let expected = [
            "CPU 210 of 160, short: true",
            "Memory 200Gi of 512Gi, short: false",
            "nvidia.com/gpu 100 of 0, short: true",
        ];
        assert_eq!(texts(&cost), expected);
        let unknown = Cost::of(&spec, Some(100), None);
        assert_eq!(texts(&unknown)[0], "CPU 210 of ?, short: false");
        for students in [None, Some(0), Some(1)] {
            assert_eq!(Cost::of(&spec, students, Some(&room)).class, []);
        }
    }
}
