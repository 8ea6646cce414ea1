//! The environment of a block: folder, programs and variables.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::documents::{Block, all, project};
use crate::outcomes::{self, After};
use crate::scenes::{Play, plays};
use crate::shell::Shell;
use crate::site::{Site, crownlabs, helm};
use cluster::keycloak::{KeycloakServer, kcadm};

/// How long a block may take; with a compiler, without a cache.
const DEADLINE: Duration = Duration::from_mins(4);
const DEADLINE_OF_SOURCES: Duration = Duration::from_mins(25);

/// The small values.yaml for documents that have none.
const VALUES: &str = "config: {controllers: {instance: {websiteBaseUrl: labs.example.org}}}
networkPolicy: {podNetworks: [10.244.0.0/16]}\n";

/// The environment of the blocks of a play.
pub struct Stage<'a> {
    own: TempDir,
    /// The working folder of the blocks.
    pub work: PathBuf,
    environment: BTreeMap<String, String>,
    site: Option<&'a Site>,
    keycloak: Option<&'a KeycloakServer>,
}

/// The plays whose lane is this one.
pub fn plays_of(lane: crate::scenes::Lane) -> Vec<Play> {
    let plays = plays(&all()).unwrap_or_else(|faults| panic!("{}", faults.join("\n")));
    plays.into_iter().filter(|play| play.scene.lane == lane).collect()
}

/// The text of the first block with this beginning in the document of a play.
fn shown(play: &Play, begin: &str) -> Option<String> {
    let blocks = all();
    let mut same = blocks.iter().filter(|block| block.document == play.blocks[0].document);
    same.find(|block| block.text.starts_with(begin)).map(|block| block.text.clone())
}

impl<'a> Stage<'a> {
    /// A folder with links to the files of the repository, and the programs in the path.
    pub fn new(play: &Play, site: Option<&'a Site>) -> Self {
        let own = tempfile::tempdir().expect("a folder");
        let folder = |name: &str| {
            let folder = own.path().join(name);
            fs::create_dir(&folder).expect("a folder");
            folder
        };
        let (repository, bin, _) = (folder("repository"), folder("bin"), folder("shell"));
        let mut environment = BTreeMap::new();
        let work = if play.scene.name == "sources" {
            project()
        } else {
            link_repository(&repository);
            fs::write(
                repository.join("values.yaml"),
                shown(play, "# values.yaml\n").as_deref().unwrap_or(VALUES),
            )
            .expect("written");
            symlink(crownlabs(), bin.join("crownlabs")).expect("a link");
            symlink(helm(), bin.join("helm")).expect("a link");
            repository
        };
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "KUBECACHEDIR"] {
            environment.insert(name.to_owned(), own.path().join(name).display().to_string());
        }
        // A kubeconfig that does not exist, to protect the user's own cluster.
        let mut kubeconfig = PathBuf::from("/nonexistent");
        if let Some(site) = site {
            kubeconfig = site.lab.admin();
            symlink(site.lab.cluster.kubectl().get_program(), bin.join("kubectl")).expect("a link");
        }
        environment.insert("KUBECONFIG".to_owned(), kubeconfig.display().to_string());
        let before = std::env::var("PATH").expect("a path");
        environment.insert("PATH".to_owned(), format!("{}:{before}", bin.display()));
        Self { own, work, environment, site, keycloak: None }
    }

    /// The same with a Keycloak server, whose administrator has this password.
    pub fn with_keycloak(mut self, keycloak: &'a KeycloakServer, password: &str) -> Self {
        // The program prompts for the password unless it is in this variable, and keeps tokens in the home
        // folder.
        self.environment.insert("KC_CLI_PASSWORD".to_owned(), password.to_owned());
        let home = self.own.path().display();
        let options = format!("-Duser.home={home} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
        self.environment.insert("KC_OPTS".to_owned(), options);
        self.keycloak = Some(keycloak);
        self
    }

    /// The values of the names in replacements.
    fn values(&self) -> BTreeMap<&'static str, String> {
        let mut values = BTreeMap::from([
            ("own", self.own.path().display().to_string()),
            ("crownlabs", crownlabs().display().to_string()),
        ]);
        if let Some(keycloak) = self.keycloak {
            values.insert("keycloak", keycloak.url());
            values.insert("kcadm", kcadm().expect("the program").display().to_string());
        }
        values
    }

    /// Runs the blocks of a play, after `prelude`, and asserts the expected results after each. Panics at the first
    /// error.
    pub fn perform(&self, play: &Play, prelude: &str) {
        let mut shell = Shell::start(&self.work, &self.own.path().join("shell"), &self.environment);
        let deadline = if play.scene.name == "sources" { DEADLINE_OF_SOURCES } else { DEADLINE };
        let (prelude, _) = play.scene.adapted(prelude, &self.values());
        shell
            .run(&prelude, deadline)
            .unwrap_or_else(|fault| panic!("the beginning of {}: {fault}", play.scene.name));
        for block in &play.blocks {
            self.run(&mut shell, play, block, deadline);
        }
    }

    fn run(&self, shell: &mut Shell, play: &Play, block: &Block, deadline: Duration) {
        let (commands, told) = play.scene.adapted(&block.commands(), &self.values());
        let begin = std::time::Instant::now();
        let before = outcomes::users_objects(self.site);
        let log = shell.run(&commands, deadline);
        let log = log
            .unwrap_or_else(|fault| panic!("{}, in the scene {}: {fault}", block.place(), play.scene.name));
        let after = After { block, log: &log, site: self.site, keycloak: self.keycloak, before };
        let seen = outcomes::assert_all(&after);
        println!("{}, {}, {:.1?}: {}", block.place(), play.scene.name, begin.elapsed(), seen.join(", "));
        for line in told {
            println!("  {line}");
        }
    }
}

/// Links the files of the repository, except for build output.
fn link_repository(folder: &Path) {
    for entry in fs::read_dir(project()).expect("the repository") {
        let entry = entry.expect("an entry");
        let name = entry.file_name();
        if name != "target" && !name.to_string_lossy().starts_with('.') {
            symlink(entry.path(), folder.join(name)).expect("a link");
        }
    }
}
