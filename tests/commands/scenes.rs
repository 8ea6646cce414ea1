//! The scenes in which blocks are run: what is there when they begin, and which words of theirs are replaced.

use std::collections::BTreeMap;

use crate::documents::{Block, Task};

/// What is there when a block is run.
pub struct Scene {
    /// Its name in the comments of the documents.
    pub name: &'static str,
    /// What is there.
    pub what: &'static str,
    /// Which scenes are played one after the other, with the same parts.
    pub lane: Lane,
    /// Words of the blocks that are replaced: what, by what, and why.
    pub substitutions: &'static [Substitution],
}

/// A replacement: what, by what, and why. In the second, `{own}` stands for a folder of the test, `{keycloak}` for the URL of
/// the server, and `{kcadm}` for the path of its program.
pub type Substitution = (&'static str, &'static str, &'static str);

/// Scenes that are played one after the other, with the same parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// This machine, without a cluster.
    Machine,
    /// Control planes, a new one each time.
    Cluster,
    /// A control plane on which the chart is installed.
    Installed,
    /// A control plane with CRDs and objects.
    Objects,
    /// A Keycloak server, and a control plane.
    Keycloak,
    /// The laptop of a stranger: by `tests/quickstart`, which `make ship-test` runs.
    Laptop,
}

const OF_KEYCLOAK: [Substitution; 2] = [
    ("/opt/keycloak/bin/kcadm.sh", "{kcadm}", "where this machine has it"),
    ("https://auth.example.com", "{keycloak}", "the server of the test"),
];

/// All scenes.
pub const SCENES: [Scene; 11] = [
    Scene {
        name: "sources",
        what: "the working copy: cargo and make, and what `cargo install` installs",
        lane: Lane::Machine,
        substitutions: &[
            (
                "cargo install --path . --locked",
                "cargo install --path . --locked --debug --root {own}",
                "a release build takes ten minutes, and the installed programs of this machine stay as they are",
            ),
            (
                "make demo",
                "make demo DETACH=1 DEMO_PROFILE=dev",
                "it ends by itself, and what it is made of is built already",
            ),
            ("make test", "make --dry-run test", "that runs this test"),
            (
                "sudo -E make load LOAD_KWOK=1 LOAD_STEPS=10000",
                "LOAD_KWOK=1 LOAD_STEPS=4 LOAD_TENANTS=2 LOAD_IDLE=2 LOAD_SAMPLE=1 LOAD_RESULTS={own} \
                 cargo bench --locked --profile dev --bench figures -- load",
                "it takes an hour, and a release build ten minutes",
            ),
            (
                "sudo -E make load ",
                "LOAD_STEPS='2 6' LOAD_TENANTS=2 LOAD_IDLE=2 LOAD_SAMPLE=1 LOAD_RESULTS={own} \
                 cargo bench --locked --profile dev --bench figures -- load ",
                "it takes two hours, and a release build ten minutes",
            ),
            (
                "make load-report",
                "mkdir {own}/images; cp docs/performance.md {own}; \
                 LOAD_RESULTS={own} LOAD_PAGE={own}/performance.md make load-report; \
                 grep 'a debug build' {own}/performance.md",
                "these figures are not those of the page",
            ),
        ],
    },
    Scene {
        name: "programs",
        what: "crownlabs and helm, the repository, and values.yaml: the one that the document shows, or a small one",
        lane: Lane::Machine,
        substitutions: &[],
    },
    Scene {
        name: "cluster",
        what: "the same, kubectl, and a cluster that has nothing of CrownLabs; what is installed there is run",
        lane: Lane::Cluster,
        substitutions: &[],
    },
    Scene {
        name: "installed",
        what: "a cluster in which the chart is installed, and the samples are ready",
        lane: Lane::Installed,
        substitutions: &[(
            "make ssh-bastion-image",
            "make --dry-run ssh-bastion-image",
            "its base image is in a registry on the Internet; nothing here pulls images",
        )],
    },
    Scene {
        name: "objects",
        what: "a cluster with the CRDs, the namespace crownlabs-system and the CrownLabs objects that the document shows; no daemon",
        lane: Lane::Objects,
        substitutions: &[],
    },
    Scene {
        name: "leaving",
        what: "the same, with a Tenant that is being deleted and waits for its finalizer",
        lane: Lane::Objects,
        substitutions: &[("NAME", "ada.rossi", "the Tenant of the scene")],
    },
    Scene {
        name: "operators",
        what: "a cluster with the CRDs, and the Deployments, webhooks and ClusterRoles of the Go operators, which are the release \
               crownlabs in the namespace labs; people who work by these; operators-values.yaml and admin.kubeconfig",
        lane: Lane::Objects,
        substitutions: &[(
            "--kubeconfig admin.kubeconfig",
            "--kubeconfig admin.kubeconfig && false || test $? = 4",
            "the operators run, and the exit code 4 says that something stands in the way",
        )],
    },
    Scene {
        name: "moved",
        what: "the same, after the way there: the chart has taken over the ClusterRoles, and the Deployments have no replicas",
        lane: Lane::Objects,
        substitutions: &[],
    },
    Scene {
        name: "keycloak",
        what: "a Keycloak server with its administrator, and a cluster with the namespace crownlabs-system",
        lane: Lane::Keycloak,
        substitutions: &OF_KEYCLOAK,
    },
    Scene {
        name: "realm",
        what: "the same, with a realm: $kcadm and $realm are set as in docs/keycloak.md, and the administrator is logged in",
        lane: Lane::Keycloak,
        substitutions: &OF_KEYCLOAK,
    },
    Scene {
        name: "laptop",
        what: "git, kind, kubectl and helm, in an empty folder: see tests/quickstart/programs.rs",
        lane: Lane::Laptop,
        substitutions: &[],
    },
];

/// Blocks that are run one after the other in one shell.
pub struct Play {
    /// Where.
    pub scene: &'static Scene,
    /// The blocks, at least one.
    pub blocks: Vec<Block>,
}

impl Scene {
    /// The commands of a block with the replacements of this scene, and a line about each of them.
    pub fn adapted(&self, commands: &str, values: &BTreeMap<&str, String>) -> (String, Vec<String>) {
        let (mut commands, mut told) = (commands.to_owned(), Vec::new());
        for (from, to, why) in self.substitutions {
            let to = values
                .iter()
                .fold((*to).to_owned(), |to, (name, value)| to.replace(&format!("{{{name}}}"), value));
            if commands.contains(from) {
                commands = commands.replace(from, &to);
                told.push(format!("`{from}` is run as `{to}`: {why}"));
            }
        }
        (commands, told)
    }
}

/// The plays that the blocks of the documents ask for, or what is wrong with them.
pub fn plays(blocks: &[Block]) -> Result<Vec<Play>, Vec<String>> {
    let (mut plays, mut faults): (Vec<Play>, _) = (Vec::new(), Vec::new());
    for block in blocks {
        let Some(Task::Run { scene, continued }) = &block.task else { continue };
        let Some(scene) = SCENES.iter().find(|known| known.name == scene) else {
            faults.push(format!("{}: there is no scene {scene:?}. There are:\n{}", block.place(), list()));
            continue;
        };
        let before = plays.last_mut().filter(|play| play.blocks[0].document == block.document);
        match before {
            Some(play) if *continued && play.scene.name == scene.name => play.blocks.push(block.clone()),
            _ if *continued => {
                faults.push(format!(
                    "{}: no block before it in {} is in the scene {:?}",
                    block.place(),
                    block.document,
                    scene.name
                ));
            }
            _ => plays.push(Play { scene, blocks: vec![block.clone()] }),
        }
    }
    if faults.is_empty() { Ok(plays) } else { Err(faults) }
}

/// The names of the scenes, with what there is.
fn list() -> String {
    SCENES.map(|scene| format!("  {}: {}\n", scene.name, scene.what)).concat()
}

/// The replacements that no block needs.
pub fn unused(plays: &[Play]) -> Vec<String> {
    let is_used = |scene: &Scene, from: &str| {
        let mut same = plays.iter().filter(|play| play.scene.name == scene.name);
        same.any(|play| play.blocks.iter().any(|block| block.commands().contains(from)))
    };
    let all = SCENES.iter().flat_map(|scene| scene.substitutions.iter().map(move |(from, ..)| (scene, from)));
    // The scene `realm` has those of `keycloak` for its beginning.
    let unused = all.filter(|(scene, from)| scene.name != "realm" && !is_used(scene, from));
    unused.map(|(scene, from)| format!("no block in the scene {} has {from:?}", scene.name)).collect()
}
