//! The CPU, memory and other resources of an environment, computed with the quantities of Kubernetes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::environment::Environment;
use crate::api::quantity::Quantity;
use crate::api::reason;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// What `KubeVirt` needs for a virtual machine in addition to the CPU and memory of its guest.
const MACHINE_CPU_OVERHEAD: &str = "500m";
const MACHINE_MEMORY_OVERHEAD: &str = "500M";

/// The resources of an environment, all in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub struct Resources {
    /// Virtual CPUs.
    pub cores: i64,
    /// The CPU request of a container.
    pub cpu_request: Quantity,
    /// The CPU limit of a container.
    pub cpu_limit: Quantity,
    /// Memory of the container, or of the guest of a virtual machine.
    pub memory: Quantity,
    /// Extended resources, the same for requests and limits.
    pub other: BTreeMap<String, Quantity>,
}

fn parse(environment: &Environment, field: &str, text: &str) -> Result<Quantity, Problem> {
    text.parse::<Quantity>().map_err(|error| {
        let name = &environment.name;
        let message = format!(
            "environment {name}: resources.{field} is \"{text}\": {error}; a quantity such as 2Gi or 500M is expected"
        );
        Problem::fault(Component::environment(&environment.name), reason::INVALID_QUANTITY, message)
    })
}

impl Resources {
    /// The resources of an environment, or what is wrong with them.
    pub fn of(environment: &Environment) -> Result<Self, Problem> {
        let resources = &environment.resources;
        let memory = parse(environment, "memory", resources.memory.as_str())?;
        if memory <= Quantity::from_int(0) {
            let message =
                format!("environment {}: resources.memory must be more than zero", environment.name);
            return Err(Problem::fault(
                Component::environment(&environment.name),
                reason::INVALID_QUANTITY,
                message,
            ));
        }
        if resources.cpu < 1 {
            let message = format!("environment {}: resources.cpu must be at least 1", environment.name);
            return Err(Problem::fault(
                Component::environment(&environment.name),
                reason::INVALID_QUANTITY,
                message,
            ));
        }
        let percentage = i64::from(resources.reserved_cpu_percentage);
        let other = resources.other_resources.iter().map(|(name, amount)| {
            let amount = parse(environment, &format!("otherResources.{name}"), amount.as_str())?;
            Ok((name.clone(), amount))
        });
        Ok(Self {
            cores: resources.cpu,
            cpu_request: Quantity::from_milli(resources.cpu.saturating_mul(percentage).saturating_mul(10)),
            cpu_limit: Quantity::from_milli(resources.cpu.saturating_mul(1000)),
            memory,
            other: other.collect::<Result<_, Problem>>()?,
        })
    }

    /// The size of the disk of a persistent environment, which must be above zero.
    pub fn disk(environment: &Environment) -> Result<String, Problem> {
        let text = environment.resources.disk.as_ref().map_or("0", |disk| disk.as_str());
        let disk = parse(environment, "disk", text)?;
        if disk <= Quantity::from_int(0) {
            let message = format!(
                "environment {} is persistent but has no disk: resources.disk must be set, for example to 10Gi",
                environment.name
            );
            return Err(Problem::fault(
                Component::environment(&environment.name),
                reason::DISK_MISSING,
                message,
            ));
        }
        Ok(disk.to_string())
    }

    /// As a container's requests and limits.
    pub fn container(&self) -> Value {
        let memory = self.memory.to_string();
        let [requests, limits] = [&self.cpu_request, &self.cpu_limit].map(|cpu| self.amounts(cpu, &memory));
        json!({"requests": requests, "limits": limits})
    }

    /// As a virtual machine's requests and limits.
    pub fn machine(&self) -> Value {
        let overhead = |quantity: &Quantity, overhead: &str| {
            overhead.parse::<Quantity>().map_or_else(|_| quantity.clone(), |more| quantity.plus(&more))
        };
        let memory = overhead(&self.memory, MACHINE_MEMORY_OVERHEAD).to_string();
        let limit = overhead(&self.cpu_limit, MACHINE_CPU_OVERHEAD);
        let [requests, limits] = [&self.cpu_request, &limit].map(|cpu| self.amounts(cpu, &memory));
        json!({"requests": requests, "limits": limits})
    }

    /// These amounts and those of extended resources.
    fn amounts(&self, cpu: &Quantity, memory: &str) -> Value {
        let mut amounts = json!({"cpu": cpu.to_string(), "memory": memory});
        for (name, amount) in &self.other {
            amounts[name] = amount.to_string().into();
        }
        amounts
    }
}
