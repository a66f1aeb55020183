//! The names of images, in the form of a node's status.

use setpoint_proto::core::PodSpec;

/// Returns the images of a Pod, in the form of a node's status.
pub fn of_pod(spec: &PodSpec) -> Vec<String> {
    let containers = spec.init_containers.iter().chain(&spec.containers);
    let images = containers.map(|container| container.image.as_str());
    let volumes = spec.volumes.iter();
    let volumes = volumes.filter_map(|volume| volume.volume_source.image.as_ref());
    let volumes = volumes.map(|image| image.reference.as_str());
    let images = images.chain(volumes).filter(|image| !image.is_empty());
    images.map(with_tag).collect()
}

fn with_tag(image: &str) -> String {
    let name = image.rfind('/').map_or(image, |slash| &image[slash..]);
    match name.contains(':') {
        true => image.to_owned(),
        false => format!("{image}:latest"),
    }
}
