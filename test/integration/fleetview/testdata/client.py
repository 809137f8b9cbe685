# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: client.py KUBECONFIG NAMESPACE SELECTOR EVENTS
#
# Reads a view with Kubernetes' own client for Python: what it may, the ConfigMaps in pages of
# one, and then so many events of them, by watches that last a second each.
import functools
import sys

from kubernetes import client, config, watch

kubeconfig, namespace, selector, events = sys.argv[1:]
config.load_kube_config(config_file=kubeconfig)
core = client.CoreV1Api()


def say(what, config_map):
    print(what, config_map.metadata.labels["view.fleetgate.io/member"] + "/" + config_map.metadata.name, flush=True)


print("VERSION", client.VersionApi().get_code().major)
print("APPS", any(group.name == "apps" for group in client.ApisApi().get_api_versions().groups))
question = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(
    resource_attributes=client.V1ResourceAttributes(verb="list", resource="configmaps", namespace=namespace)))
print("ALLOWED", client.AuthorizationV1Api().create_self_subject_access_review(question).status.allowed)

more = None
while more != "":
    page = core.list_namespaced_config_map(namespace, label_selector=selector, limit=1, _continue=more)
    more = page.metadata._continue or ""
    for config_map in page.items:
        say("LISTED", config_map)


@functools.wraps(core.list_namespaced_config_map)
def one_second(*arguments, **options):
    print("WATCHING", flush=True)
    return core.list_namespaced_config_map(*arguments, timeout_seconds=1, **options)


stream = watch.Watch().stream(one_second, namespace, label_selector=selector, resource_version=page.metadata.resource_version)
for _, event in zip(range(int(events)), stream):
    say(event["type"], event["object"])
