use super::*;

/// The id of an image, and its name with a tag.
const ID: &str = "sha256:5be0";
const IMAGE: &str = "here.test/shop/app:1";

fn credential(uid: &str, password: &str) -> Credential {
    Credential {
        username: "puller".into(),
        password: password.into(),
        secret: SecretRef {
            namespace: "shop".into(),
            name: "pull".into(),
            uid: uid.into(),
        },
    }
}

fn open(directory: &Path) -> ImageAccess {
    ImageAccess::open(Policy::default(), directory).unwrap()
}

fn listed(id: &str, tags: &[&str]) -> Listed {
    Listed {
        id: id.into(),
        tags: tags.iter().map(ToString::to_string).collect(),
        ..Listed::default()
    }
}

/// Returns the files below a directory, with their text.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["pulling", "pulled"] {
        for entry in std::fs::read_dir(directory.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.strip_prefix(directory).unwrap();
            found.push((name.display().to_string(), text));
        }
    }
    found
}

#[test]
fn an_image_that_was_pulled_with_credentials_is_for_those_who_have_them_after_a_restart_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let access = open(directory.path());
    assert!(!access.must_pull(IMAGE, ID, &[]), "it was preloaded");
    let own = credential("1", "hush");
    access.begin(IMAGE).unwrap();
    assert!(access.must_pull(IMAGE, ID, &[]), "it is being pulled");
    access.pulled(IMAGE, ID, Some(&own));
    for access in [access, open(directory.path())] {
        assert!(access.must_pull(IMAGE, ID, &[]));
        assert!(access.must_pull(IMAGE, ID, &[credential("2", "guessed")]));
        assert!(!access.must_pull(IMAGE, ID, std::slice::from_ref(&own)));
        assert!(!access.must_pull("here.test/shop/app:2", ID, std::slice::from_ref(&own)));
        assert!(access.must_pull("here.test/copy/app:1", ID, std::slice::from_ref(&own)));
    }
    // Another Secret with the same credentials, whose password changes afterwards.
    let access = open(directory.path());
    assert!(!access.must_pull(IMAGE, ID, &[credential("2", "hush")]));
    assert!(!open(directory.path()).must_pull(IMAGE, ID, &[credential("2", "changed")]));
    let files = files(directory.path());
    assert_eq!(files.len(), 1, "{files:?}");
    let (name, text) = &files[0];
    assert!(name.starts_with("pulled/sha256-"), "{name}");
    assert!(text.contains("\"imageRef\":\"sha256:5be0\""), "{text}");
    assert!(!text.contains("hush") && !text.contains("puller"), "{text}");
}

#[test]
fn an_image_that_was_pulled_without_credentials_is_for_everyone() {
    let directory = tempfile::tempdir().unwrap();
    let access = open(directory.path());
    access.begin(IMAGE).unwrap();
    access.pulled(IMAGE, ID, None);
    assert!(!access.must_pull(IMAGE, ID, &[]));
    assert!(!open(directory.path()).must_pull(IMAGE, ID, &[]));
}

#[test]
fn a_pull_that_failed_leaves_nothing_and_others_of_its_image_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let access = open(directory.path());
    access.begin(IMAGE).unwrap();
    access.begin(IMAGE).unwrap();
    access.failed(IMAGE);
    assert_eq!(files(directory.path()).len(), 1);
    access.failed(IMAGE);
    assert!(files(directory.path()).is_empty());
    assert!(!access.must_pull(IMAGE, ID, &[]));
}

/// Checks the moment between the end of a pull and its record.
#[test]
fn an_image_whose_pull_an_agent_did_not_see_the_end_of_is_pulled_by_the_next_pod() {
    let directory = tempfile::tempdir().unwrap();
    let before = open(directory.path());
    before.begin("app").unwrap();
    before.begin("here.test/gone:1").unwrap();
    drop(before);
    let access = open(directory.path());
    assert!(
        access.must_pull("app", ID, &[]),
        "even if nothing is listed"
    );
    access.recover(&[listed(ID, &["docker.io/library/app:latest"])]);
    let files = files(directory.path());
    assert!(
        files.len() == 1 && files[0].0.starts_with("pulled/"),
        "{files:?}"
    );
    let own = credential("1", "hush");
    for access in [access, open(directory.path())] {
        assert!(access.must_pull("app", ID, std::slice::from_ref(&own)));
        access.begin("app").unwrap();
        access.pulled("app", ID, Some(&own));
        assert!(!access.must_pull("app", ID, std::slice::from_ref(&own)));
    }
}

#[test]
fn a_record_goes_with_its_image_and_a_new_one_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let access = open(directory.path());
    let earlier = Timestamp::now();
    access.begin(IMAGE).unwrap();
    access.pulled(IMAGE, ID, None);
    access.forget_others(&[], earlier);
    assert_eq!(files(directory.path()).len(), 1, "it was pulled meanwhile");
    let later = Timestamp::now() + jiff::SignedDuration::from_secs(1);
    access.forget_others(&[listed(ID, &[])], later);
    assert_eq!(files(directory.path()).len(), 1);
    access.forget_others(&[listed("sha256:other", &[])], later);
    assert!(files(directory.path()).is_empty());
}

#[test]
fn a_damaged_record_grants_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let access = open(directory.path());
    access.begin(IMAGE).unwrap();
    access.pulled(IMAGE, ID, None);
    let (name, _) = &files(directory.path())[0];
    std::fs::write(directory.path().join(name), "{").unwrap();
    let access = open(directory.path());
    assert!(access.must_pull(IMAGE, ID, &[]));
    access.begin(IMAGE).unwrap();
    access.pulled(IMAGE, ID, None);
    assert!(!open(directory.path()).must_pull(IMAGE, ID, &[]));
}
