"""The streams of the Python client: exec, attach and port forwarding. The argument is a port of the Pod `web`."""

import json
import sys

from kubernetes import client, config
from kubernetes.stream import portforward, stream

config.load_kube_config()
core = client.CoreV1Api()


def run(*command, **options):
    return stream(core.connect_get_namespaced_pod_exec, "web", "default", command=list(command),
                  stdin=False, stdout=True, stderr=True, tty=False, **options)


def commands():
    assert run("echo", "hello") == "hello\n"
    response = run("sh", "-c", "echo out; echo err >&2; exit 3", _preload_content=False)
    response.run_forever(timeout=30)
    assert response.read_stdout() == "out\n" and response.read_stderr() == "err\n"
    assert response.returncode == 3


def standard_input():
    shell = stream(core.connect_get_namespaced_pod_exec, "web", "default", command=["sh"], stdin=True,
                   stdout=True, stderr=True, tty=False, _preload_content=False)
    shell.write_stdin("echo one\n")
    assert shell.readline_stdout(timeout=30) == "one"
    shell.write_stdin("exit 0\n")
    shell.run_forever(timeout=30)
    assert shell.returncode == 0
    shell.close()


def ports():
    port = int(sys.argv[1])
    forwarded = portforward(core.connect_get_namespaced_pod_portforward, "web", "default", ports=str(port))
    socket = forwarded.socket(port)
    socket.setblocking(True)
    socket.sendall(b"GET /GPL-3 HTTP/1.0\r\n\r\n")
    answer = b""
    while chunk := socket.recv(65536):
        answer += chunk
    assert b"GNU GENERAL PUBLIC LICENSE" in answer, answer
    assert not forwarded.error(port), forwarded.error(port)


def proxied():
    name = f"web:{sys.argv[1]}"
    # The list of files; the client follows the redirect to the root.
    text = core.connect_get_namespaced_pod_proxy(name, "default")
    assert "GPL-3" in text, text


def refused():
    try:
        stream(core.connect_get_namespaced_pod_exec, "none", "default", command=["true"], stdout=True)
    except client.exceptions.ApiException as error:
        assert error.status in (0, 404) and "404" in str(error.reason), error
    else:
        raise AssertionError("the Pod does not exist")


for step in (commands, standard_input, ports, proxied, refused):
    step()
print("done")
