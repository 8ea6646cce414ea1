//! The CPU, memory and other resources of an environment, computed with the quantities of Kubernetes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::environment::Environment;
use super::names::is_label_key;
use super::quantity::Quantity;
use super::reason;
use super::template_fault::TemplateFault;

/// The CPU that `KubeVirt` needs for a virtual machine in addition to the CPU of its guest, in thousandths.
const MACHINE_CPU_OVERHEAD: i64 = 500;
/// The memory that it needs in addition to the memory of the guest, in bytes.
const MACHINE_MEMORY_OVERHEAD: i64 = 500_000_000;
/// The domain of Kubernetes' own resource names, and the prefix of the resource name of a huge page.
const NATIVE: &str = "kubernetes.io/";
const HUGE_PAGES: &str = "hugepages-";

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
    /// Whether they belong to a virtual machine.
    pub is_machine: bool,
}

/// Amounts of resources, by their names in a pod.
pub type Amounts = BTreeMap<String, Quantity>;

fn parse(environment: &Environment, field: &str, text: &str) -> Result<Quantity, TemplateFault> {
    text.parse::<Quantity>().map_err(|error| {
        let message =
            format!("resources.{field} is \"{text}\": {error}; a quantity such as 2Gi or 500M is expected");
        // A name of a resource has dots itself.
        let member = field.split('.').next().unwrap_or_default();
        TemplateFault::of(environment, reason::INVALID_QUANTITY, &message).at(&format!("resources.{member}"))
    })
}

impl Resources {
    /// The resources of an environment.
    ///
    /// # Errors
    /// When an amount cannot be parsed or is too small, or when a container cannot request the resource.
    pub fn of(environment: &Environment) -> Result<Self, TemplateFault> {
        let resources = &environment.resources;
        let invalid = |message: &str| TemplateFault::of(environment, reason::INVALID_QUANTITY, message);
        let memory = parse(environment, "memory", resources.memory.as_str())?;
        if memory <= Quantity::ZERO {
            return Err(invalid("resources.memory must be more than zero").at("resources.memory"));
        }
        if resources.cpu < 1 {
            return Err(invalid("resources.cpu must be at least 1").at("resources.cpu"));
        }
        let percentage = i64::from(resources.reserved_cpu_percentage);
        let other = resources.other_resources.iter().map(|(name, amount)| {
            let amount = parse(environment, &format!("otherResources.{name}"), amount.as_str())?;
            Ok((name.clone(), extended(environment, name, amount)?))
        });
        Ok(Self {
            cores: resources.cpu,
            cpu_request: Quantity::from_milli(resources.cpu.saturating_mul(percentage).saturating_mul(10)),
            cpu_limit: Quantity::from_milli(resources.cpu.saturating_mul(1000)),
            memory,
            other: other.collect::<Result<_, TemplateFault>>()?,
            is_machine: environment.environment_type.is_vm(),
        })
    }

    /// The size of the disk of a persistent environment.
    ///
    /// # Errors
    /// When the disk size is missing, cannot be parsed, or is not above zero.
    pub fn disk(environment: &Environment) -> Result<Quantity, TemplateFault> {
        let text = environment.resources.disk.as_ref().map_or("0", |disk| disk.as_str());
        let disk = parse(environment, "disk", text)?;
        if disk <= Quantity::ZERO {
            let name = &environment.name;
            let message = format!(
                "environment {name} is persistent but has no disk: resources.disk must be set, for example to 10Gi"
            );
            return Err(TemplateFault {
                message,
                ..TemplateFault::of(environment, reason::DISK_MISSING, "").at("resources.disk")
            });
        }
        Ok(disk)
    }

    /// The requests of its pod.
    pub fn requests(&self) -> Amounts {
        self.amounts(self.cpu_request.clone())
    }

    /// The limits of its pod.
    pub fn limits(&self) -> Amounts {
        let overhead = if self.is_machine { MACHINE_CPU_OVERHEAD } else { 0 };
        self.amounts(self.cpu_limit.plus(&Quantity::from_milli(overhead)))
    }

    /// Formats requests and limits as in a pod.
    pub fn to_json(&self) -> Value {
        let texts = |amounts: Amounts| -> BTreeMap<String, String> {
            amounts.into_iter().map(|(name, amount)| (name, amount.to_string())).collect()
        };
        json!({"requests": texts(self.requests()), "limits": texts(self.limits())})
    }

    fn amounts(&self, cpu: Quantity) -> Amounts {
        let overhead = Quantity::from_int(if self.is_machine { MACHINE_MEMORY_OVERHEAD } else { 0 });
        let own = [("cpu".to_owned(), cpu), ("memory".to_owned(), self.memory.plus(&overhead))];
        own.into_iter().chain(self.other.clone()).collect()
    }
}

/// Returns the amount of a resource other than processors and memory if a container can request it, by the rules of
/// Kubernetes.
fn extended(environment: &Environment, name: &str, amount: Quantity) -> Result<Quantity, TemplateFault> {
    let invalid = |message: String| {
        let fault = TemplateFault::of(environment, reason::INVALID_QUANTITY, &message);
        Err(fault.at("resources.otherResources"))
    };
    let is_plain = name == "ephemeral-storage" || name.starts_with(HUGE_PAGES) || name.contains(NATIVE);
    let is_extended = name.contains('/') && is_label_key(&format!("requests.{name}"));
    if !is_label_key(name) || !is_plain && (!is_extended || name.starts_with("requests.")) {
        return invalid(format!(
            "resources.otherResources.{name}: a container cannot request this resource; a name such as nvidia.com/gpu, \
             hugepages-2Mi or ephemeral-storage is expected"
        ));
    }
    if amount.is_negative() || !is_plain && Quantity::from_int(amount.value()) != amount {
        return invalid(format!(
            "resources.otherResources.{name} is {amount}: a whole number, not below 0, is expected"
        ));
    }
    Ok(amount)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn environment(resources: &serde_json::Value) -> Environment {
        let environment =
            json!({"name": "main", "environmentType": "VirtualMachine", "resources": resources});
        serde_json::from_value(environment).expect("an environment")
    }

    #[test]
    fn a_machine_requests_more_than_its_guest_has() {
        let of_guest = json!({"cpu": 2, "memory": "1Gi", "reservedCPUPercentage": 25, "otherResources": {"a.b/gpu": "1"}});
        let machine = Resources::of(&environment(&of_guest)).expect("valid");
        let container = Resources { is_machine: false, ..machine.clone() };
        let texts = |amounts: Amounts| amounts.values().map(ToString::to_string).collect::<Vec<_>>();
        // 1073741824 + 500000000 bytes.
        assert_eq!(texts(machine.requests()), ["1", "500m", "1573741824"]);
        assert_eq!(texts(machine.limits()), ["1", "2500m", "1573741824"]);
        assert_eq!(texts(container.requests()), ["1", "500m", "1Gi"]);
        assert_eq!(texts(container.limits()), ["1", "2", "1Gi"]);
    }

    #[test]
    fn other_resources_are_limited_to_those_that_a_container_can_request() {
        let said = |name: &str, amount: &str| {
            let resources = json!({"cpu": 1, "memory": "1Gi", "otherResources": {name: amount}});
            Resources::of(&environment(&resources)).err().map(|fault| fault.message).unwrap_or_default()
        };
        for (name, amount) in [
            ("nvidia.com/gpu", "1"),
            ("nvidia.com/gpu", "0"),
            ("hugepages-2Mi", "64Mi"),
            ("ephemeral-storage", "1500m"),
            ("devices.kubernetes.io/x", "1500m"),
        ] {
            assert_eq!(said(name, amount), "", "{name}");
        }
        for name in [
            "gpu",
            "cpu",
            "memory",
            "requests.nvidia.com/gpu",
            "nvidia.com/",
            "/gpu",
            "a b/c",
            "NVIDIA.com/gpu",
            "",
        ] {
            assert!(said(name, "1").contains("a container cannot request"), "{name}: {}", said(name, "1"));
        }
        for amount in ["1500m", "-1"] {
            assert!(said("nvidia.com/gpu", amount).contains("a whole number, not below 0"), "{amount}");
        }
        assert!(said("nvidia.com/gpu", "one").contains("resources.otherResources.nvidia.com/gpu is \"one\""));
    }
}
