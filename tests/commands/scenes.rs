//! The scenes for blocks: their initial state, and the words of blocks that are replaced.

use std::collections::BTreeMap;

use crate::documents::{Block, Task};

/// The initial state of a block.
pub struct Scene {
    /// Its name in the comments of the documents.
    pub name: &'static str,
    /// A description of the state.
    pub what: &'static str,
    /// Scenes with the same lane run one after the other, with the same parts.
    pub lane: Lane,
    /// Words of the blocks that are replaced: the old text, the new text, and the reason.
    pub substitutions: &'static [Substitution],
}

/// A replacement: the old text, the new text, and the reason. In the new text, `{own}` stands for a folder of the test,
/// `{keycloak}` for the URL of the server, and `{kcadm}` for the path of its program.
pub type Substitution = (&'static str, &'static str, &'static str);

/// Scenes that run one after the other, with the same parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// This machine, without a cluster.
    Machine,
    /// Control planes, a new one each time.
    Cluster,
    /// A control plane with the chart installed.
    Installed,
    /// A control plane with CRDs and objects.
    Objects,
    /// A Keycloak server, and a control plane.
    Keycloak,
    /// The laptop of a new user: run by `tests/quickstart` in `make ship-test`.
    Laptop,
}

const OF_KEYCLOAK: [Substitution; 2] = [
    ("/opt/keycloak/bin/kcadm.sh", "{kcadm}", "where this machine has it"),
    ("https://auth.example.com", "{keycloak}", "the server of the test"),
];

const OF_SENTENCES: [Substitution; 21] = [
    (
        "plan --kubeconfig FILE --config FILE",
        "plan --kubeconfig kubeconfig --config config/crownlabs.yaml || test $? = 4",
        "the files of the scene; the exit code 4 reports changes",
    ),
    (
        "NAMESPACE/INSTANCE --exit-code",
        "tenant-ada-rossi/server-1 --exit-code || test $? = 4",
        "a machine of the samples; the exit code 4 reports that it is not ready",
    ),
    ("tenant-carlo-verdi/routing-try", "tenant-ada-rossi/server-1", "a machine of the samples"),
    ("-n tenant-ada instance/hello-1", "-n tenant-ada-rossi instance/server-1", "a machine of the samples"),
    ("why INSTANCE -n NAMESPACE", "why server-1 -n tenant-ada-rossi", "a machine of the samples"),
    ("instance NAME -n NAMESPACE", "instance server-1 -n tenant-ada-rossi", "a machine of the samples"),
    ("instance NAME", "instance server-1", "a machine of the samples"),
    ("template routing", "template server", "a Template of the samples"),
    ("KIND.spec", "instance.spec", "a kind"),
    ("KIND -A", "workspaces -A", "a kind"),
    ("man FOLDER", "man man-pages", "a folder"),
    ("-f FILE", "-f key", "the key of the scene"),
    ("openssl passwd -6", "openssl passwd -6 -stdin <<< secret", "it reads the password from a terminal"),
    ("-n labs", "-n crownlabs-system", "the namespace of the release"),
    ("helm test crownlabs", "helm test --help crownlabs", "its pod is simulated and does not end"),
    (
        "--reset-then-reuse-values",
        "--reset-then-reuse-values --dry-run=client crownlabs manifests/chart -n crownlabs-system",
        "the release of the scene; its webhooks have addresses that Helm would not remove",
    ),
    ("OLD-webhook", "crownlabs-webhook --dry-run=server", "the daemon needs the configurations"),
    (
        "kubectl delete -f manifests/",
        "kubectl delete --dry-run=server --ignore-not-found -f manifests/",
        "the other commands need the daemon",
    ),
    ("logs ", "logs --help ", "simulated pods have no logs"),
    ("kubectl edit", "kubectl edit --help", "it opens an editor"),
    (
        "kubectl cluster-info dump | grep -m1 cluster-cidr",
        "kubectl cluster-info dump --help",
        "the control plane has no pods, whose arguments the command prints",
    ),
];

/// All scenes.
pub const SCENES: [Scene; 12] = [
    Scene {
        name: "sources",
        what: "the working copy: cargo and make, and the programs that `cargo install` installs",
        lane: Lane::Machine,
        substitutions: &[
            (
                "cargo install --path . --locked",
                "install -D {crownlabs} {own}/bin/crownlabs",
                "`make ship-test` makes the release build, and the installed programs of this machine stay as they are",
            ),
            (
                "make demo",
                "make demo DETACH=1 DEMO_PROFILE=dev",
                "it ends without Ctrl-C, and its parts are built already",
            ),
            ("make test", "make --dry-run test", "it runs this test"),
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
                "the page keeps its figures",
            ),
        ],
    },
    Scene {
        name: "programs",
        what: "crownlabs and helm, the repository, and values.yaml: from the document, or a small one",
        lane: Lane::Machine,
        substitutions: &[(
            "--storage.tsdb.retention.time=31d",
            "--storage.tsdb.retention.time=31d --version",
            "the server does not end by itself",
        )],
    },
    Scene {
        name: "cluster",
        what: "the same, kubectl, and a cluster without CrownLabs; an installed daemon runs",
        lane: Lane::Cluster,
        substitutions: &[],
    },
    Scene {
        name: "installed",
        what: "a cluster with the chart installed and the samples ready",
        lane: Lane::Installed,
        substitutions: &[
            (
                "make ssh-bastion-image",
                "make --dry-run ssh-bastion-image",
                "its base image is in a registry on the Internet; nothing here pulls images",
            ),
            (
                "kubectl logs -n crownlabs-system -l app.kubernetes.io/name=crownlabs --prefix --tail=200",
                "kubectl get pods -n crownlabs-system -l app.kubernetes.io/name=crownlabs -o name | \
                 grep ^pod/crownlabs-",
                "the daemon runs beside its simulated pods, which have no logs",
            ),
            (
                "kubectl get --raw /api/v1/namespaces/crownlabs-system/pods/$pod:8081/proxy/readyz",
                "test -n \"$pod\"",
                "the daemon runs beside its simulated pods, which have no ports",
            ),
            (
                "crownlabs config check configuration.yaml --connect",
                "{ crownlabs config check configuration.yaml --connect || test $? = 4; }",
                "the exit code 4 reports a part that this cluster lacks",
            ),
        ],
    },
    Scene {
        name: "sentences",
        what: "the same, for the commands outside of blocks: see inline.rs",
        lane: Lane::Installed,
        substitutions: &OF_SENTENCES,
    },
    Scene {
        name: "objects",
        what: "a cluster with the CRDs, the namespace crownlabs-system and the CrownLabs objects in the document; no daemon",
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
               crownlabs in the namespace labs; users who work with them; operators-values.yaml and admin.kubeconfig",
        lane: Lane::Objects,
        substitutions: &[
            (
                "--namespace labs > values.yaml",
                "--namespace labs > values.yaml && false || test $? = 5",
                "the values have no version of the images, and the exit code 5 reports the step",
            ),
            (
                "--configuration > crownlabs.yaml",
                "--configuration > crownlabs.yaml && false || test $? = 5",
                "the same",
            ),
            (
                "--kubeconfig admin.kubeconfig",
                "--kubeconfig admin.kubeconfig && false || test $? = 4",
                "the operators run, and the exit code 4 reports an obstacle",
            ),
        ],
    },
    Scene {
        name: "moved",
        what: "the same, after the migration: the chart has taken over the ClusterRoles, and the Deployments have no replicas",
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
        what: "the same, with a realm, its client-api-server and the user ada.rossi: $kcadm and $realm are set as in \
               docs/keycloak.md, and the administrator is logged in",
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

/// Blocks that run one after the other in one shell.
pub struct Play {
    /// The scene of the blocks.
    pub scene: &'static Scene,
    /// The blocks, at least one.
    pub blocks: Vec<Block>,
}

impl Scene {
    /// The commands of a block with the replacements of this scene, and a line about each replacement.
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

/// The plays of the blocks of the documents, or the errors in them.
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

/// The names of the scenes, with their descriptions.
fn list() -> String {
    SCENES.map(|scene| format!("  {}: {}\n", scene.name, scene.what)).concat()
}

/// The replacements that are not used in any block.
pub fn unused(plays: &[Play]) -> Vec<String> {
    let is_used = |scene: &Scene, from: &str| {
        let mut same = plays.iter().filter(|play| play.scene.name == scene.name);
        same.any(|play| play.blocks.iter().any(|block| block.commands().contains(from)))
    };
    let all = SCENES.iter().flat_map(|scene| scene.substitutions.iter().map(move |(from, ..)| (scene, from)));
    // The scene `realm` begins with the replacements of `keycloak`.
    let unused = all.filter(|(scene, from)| scene.name != "realm" && !is_used(scene, from));
    unused.map(|(scene, from)| format!("no block in the scene {} has {from:?}", scene.name)).collect()
}
