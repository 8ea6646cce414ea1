//! The start and the stop of virtual machines.

use super::*;
use crate::api::labels::RUN_STRATEGY;
use crate::config::VmPower;
use crate::kinds::VirtualMachineKind;

/// The fields and the annotation with the strategy that the plan writes for a machine with these fields, or for a new
/// one.
fn written(machine: Option<Value>, running: bool, vm_power: VmPower) -> (Value, Option<String>) {
    let mut observed =
        observed(json!([environment("main", "VirtualMachine", json!({"persistent": true, "mode": "Exam"}))]));
    observed.instance = edit(&observed.instance, &json!({"spec": {"running": running}}));
    let machine = machine.map(|fields| edit(&owned::<VirtualMachineKind>("my-lab", json!({})), &fields));
    observed.children.set::<VirtualMachineKind>(machine);
    let config = InstanceConfig { vm_power, ..InstanceConfig::classic() };
    let plan = plan(&observed, &config, Timestamp::UNIX_EPOCH);
    let desired = plan.ensure.iter().find(|desired| desired.kind.kind == "VirtualMachine").expect("planned");
    let new = desired.manifest.as_ref().map(|manifest| manifest.json()["spec"].clone());
    let spec = new.unwrap_or_else(|| desired.fields["spec"].clone());
    let mut power = json!({});
    for member in ["running", "runStrategy"] {
        if let Some(value) = spec.get(member) {
            power[member] = value.clone();
        }
    }
    (power, desired.annotations.get(RUN_STRATEGY).cloned().flatten())
}

#[test]
fn a_new_machine_has_the_configured_power_member() {
    for (vm_power, running, wanted) in [
        (VmPower::RunStrategy, true, json!({"runStrategy": "Always"})),
        (VmPower::RunStrategy, false, json!({"runStrategy": "Halted"})),
        (VmPower::Running, true, json!({"running": true})),
        (VmPower::Running, false, json!({"running": false})),
    ] {
        assert_eq!(written(None, running, vm_power), (wanted, None));
    }
}

#[test]
fn an_existing_machine_keeps_its_power_member_and_strategy() {
    let with = |strategy: &str, remembered: Option<&str>| {
        Some(
            json!({"metadata": {"annotations": {RUN_STRATEGY: remembered}}, "spec": {"runStrategy": strategy}}),
        )
    };
    for (machine, running, wanted, remembered) in [
        (Some(json!({"spec": {"running": true}})), false, json!({"running": false}), None),
        (Some(json!({"spec": {"running": false}})), true, json!({"running": true}), None),
        (with("Always", None), false, json!({"runStrategy": "Halted"}), None),
        (with("Halted", None), true, json!({"runStrategy": "Always"}), None),
        (with("Halted", None), false, json!({"runStrategy": "Halted"}), None),
        // An administrator's strategy is kept while the machine runs, and restored after a stop.
        (with("RerunOnFailure", None), true, json!({"runStrategy": "RerunOnFailure"}), None),
        (with("Manual", None), false, json!({"runStrategy": "Halted"}), Some("Manual")),
        (with("Halted", Some("Manual")), false, json!({"runStrategy": "Halted"}), Some("Manual")),
        (with("Halted", Some("Manual")), true, json!({"runStrategy": "Manual"}), Some("Manual")),
        (with("Once", Some("Manual")), false, json!({"runStrategy": "Halted"}), Some("Once")),
        (with("Always", Some("Manual")), false, json!({"runStrategy": "Halted"}), Some("Always")),
    ] {
        for vm_power in [VmPower::RunStrategy, VmPower::Running] {
            let (power, note) = written(machine.clone(), running, vm_power);
            assert_eq!((power, note.as_deref()), (wanted.clone(), remembered), "{machine:?}, {running}");
        }
    }
}
