// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// text encodes an object; the types of its numbers do not matter.
func text(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	written, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

func TestStrip(t *testing.T) {
	cases := map[string]struct{ reason, have, want string }{
		"metadata and status": {
			reason: "values of servers, and finalizers, whose controllers run on the hub, are removed; the author's values stay",
			have: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: 0f
  resourceVersion: "7"
  generation: 2
  creationTimestamp: "2026-01-01T00:00:00Z"
  deletionTimestamp: "2026-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 0
  selfLink: /x
  managedFields: [{manager: kubectl}]
  ownerReferences: [{name: x}]
  finalizers: [example.com/keep]
  labels: {app: web}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    deployment.kubernetes.io/revision: "1"
    example.com/keep: "yes"
spec: {replicas: 1}
status: {replicas: 1}
`,
			want: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
  annotations: {example.com/keep: "yes"}
spec: {replicas: 1}
`,
		},
		"no annotations left": {
			reason: "an object with only server annotations equals one without any",
			have:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}}",
			want:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		},
		"Service": {
			reason: "addresses and ports that the hub allocated mean nothing elsewhere",
			have: `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.1
  clusterIPs: [10.0.0.1]
  healthCheckNodePort: 30000
  ports: [{port: 80, nodePort: 30001}, {port: 81}]
status: {loadBalancer: {}}
`,
			want: `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 80}, {port: 81}]}
`,
		},
		"authorities of webhooks": {
			reason: "those that only an injector wrote are for servers of the hub",
			have: `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: w
  managedFields:
  - manager: kubectl-client-side-apply
    fieldsV1: {"f:webhooks": {'k:{"name":"a"}': {"f:clientConfig": {"f:service": {"f:name": {}}}}, 'k:{"name":"b"}': {"f:clientConfig": {"f:caBundle": {}, "f:service": {}}}}}
  - {manager: certgen, fieldsV1: {"f:webhooks": {'k:{"name":"a"}': {"f:failurePolicy": {}, "f:clientConfig": {"f:caBundle": {}}}}}}
  - {manager: operator, fieldsV1: {"f:webhooks": {'k:{"name":"c"}': {"f:clientConfig": {"f:caBundle": {}, "f:url": {}}}}}}
  - {manager: kubectl-patch, fieldsV1: {"f:webhooks": {'k:{"name":"d"}': {"f:clientConfig": {"f:caBundle": {}}}}}}
webhooks:
- {name: a, clientConfig: {caBundle: QQ==, service: {name: s}}}
- {name: b, clientConfig: {caBundle: QQ==, service: {name: s}}}
- {name: c, clientConfig: {caBundle: QQ==, url: "https://c"}}
- {name: d, clientConfig: {caBundle: QQ==, url: "https://d"}}
- {name: e, clientConfig: {caBundle: QQ==, url: "https://e"}}
`,
			want: `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks:
- {name: a, clientConfig: {service: {name: s}}}
- {name: b, clientConfig: {caBundle: QQ==, service: {name: s}}}
- {name: c, clientConfig: {caBundle: QQ==, url: "https://c"}}
- {name: d, clientConfig: {caBundle: QQ==, url: "https://d"}}
- {name: e, clientConfig: {caBundle: QQ==, url: "https://e"}}
`,
		},
		"authority of a conversion": {
			have: `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: a.example.com
  managedFields:
  - {manager: helm, fieldsV1: {"f:spec": {"f:conversion": {"f:strategy": {}, "f:webhook": {"f:clientConfig": {"f:service": {}}}}}}}
  - {manager: cainjector, fieldsV1: {"f:spec": {"f:conversion": {"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}}}}}
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: QQ==, service: {name: s}}}}}
`,
			want: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.example.com}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s}}}}}}",
		},
		"authority of an APIService": {
			have: `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.a, managedFields: [{manager: helm, fieldsV1: {"f:spec": {"f:service": {}}}}, {manager: cainjector, fieldsV1: {"f:spec": {"f:caBundle": {}}}}]}
spec: {caBundle: QQ==, service: {name: s}}
`,
			want: "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a}, spec: {service: {name: s}}}",
		},
		"authority that an annotation asks for": {
			reason: "a member may have no injector",
			have: `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.a
  annotations: {cert-manager.io/inject-ca-from: a/b}
  managedFields: [{manager: helm, fieldsV1: {"f:spec": {"f:service": {}}}}, {manager: cainjector, fieldsV1: {"f:spec": {"f:caBundle": {}}}}]
spec: {caBundle: QQ==, service: {name: s}}
`,
			want: "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a, annotations: {cert-manager.io/inject-ca-from: a/b}}, spec: {caBundle: QQ==, service: {name: s}}}",
		},
		"generated host of a Route": {
			reason: "it is in the domain of the hub",
			have:   `{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: a, annotations: {openshift.io/host.generated: "true"}}, spec: {host: a.apps.hub, to: {name: s}}}`,
			want:   "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: a}, spec: {to: {name: s}}}",
		},
		"host of a Route": {
			reason: "the author chose it",
			have:   "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: a}, spec: {host: a.example.com}}",
			want:   "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: a}, spec: {host: a.example.com}}",
		},
		"finalizers in the spec of a Namespace": {
			reason: "the deletion on members would hang",
			have:   "{apiVersion: v1, kind: Namespace, metadata: {name: a}, spec: {finalizers: [kubernetes, openshift.io/origin]}}",
			want:   "{apiVersion: v1, kind: Namespace, metadata: {name: a}, spec: {finalizers: [kubernetes]}}",
		},
		"finalizers in the spec of another kind": {
			have: "{apiVersion: example.com/v1, kind: Namespace, metadata: {name: a}, spec: {finalizers: [a]}}",
			want: "{apiVersion: example.com/v1, kind: Namespace, metadata: {name: a}, spec: {finalizers: [a]}}",
		},
		"headless Service": {
			reason: "the author wrote None",
			have:   "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}",
			want:   "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}",
		},
		"a kind named Service in another group": {
			have: "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: x}}",
			want: "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: x}}",
		},
		"Job": {
			reason: "the generated selector would match no pod of another cluster",
			have: `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: x}}
  template:
    metadata:
      creationTimestamp: null
      labels: {app: once, controller-uid: x, batch.kubernetes.io/controller-uid: x}
`,
			want: "{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {metadata: {labels: {app: once}}}}}",
		},
		"finalizers that are placed": {
			have: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [a.example.com/b], annotations: {fleetgate.io/place-finalizers: "true"}}}`,
			want: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [a.example.com/b]}}",
		},
		"marks of owners": {
			reason: "the same tool on a member would delete the object",
			have: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {app.kubernetes.io/managed-by: Helm, argocd.argoproj.io/instance: x, objectset.rio.cattle.io/hash: h, applyset.kubernetes.io/part-of: a, generate.kyverno.io/trigger-uid: u}
  annotations: {meta.helm.sh/release-name: r, meta.helm.sh/release-namespace: n, argocd.argoproj.io/tracking-id: t, objectset.rio.cattle.io/applied: z, configsync.gke.io/resource-id: i, config.k8s.io/owning-inventory: o, fleetgate.io/placement: Place}
`,
			want: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/managed-by: Helm}}}",
		},
		"author's node ports": {
			reason: "nobody owns what the API server allocated",
			have: `
apiVersion: v1
kind: Service
metadata:
  name: a
  managedFields:
  - {manager: kubectl, operation: Update, fieldsV1: {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:nodePort": {}, "f:port": {}}, 'k:{"port":80,"protocol":"UDP"}': {".": {}, "f:port": {}}}}}}
spec:
  clusterIP: 10.0.0.1
  ipFamilies: [IPv4]
  ipFamilyPolicy: SingleStack
  ports: [{port: 80, protocol: TCP, nodePort: 30001}, {port: 80, protocol: UDP, nodePort: 30002}]
`,
			want: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, protocol: TCP, nodePort: 30001}, {port: 80, protocol: UDP}]}}",
		},
		"author's address families": {
			have: `
apiVersion: v1
kind: Service
metadata: {name: a, managedFields: [{manager: argocd-controller, operation: Apply, fieldsV1: {"f:spec": {"f:ipFamilies": {}, "f:ipFamilyPolicy": {}}}}]}
spec: {ipFamilies: [IPv6], ipFamilyPolicy: SingleStack}
`,
			want: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ipFamilies: [IPv6], ipFamilyPolicy: SingleStack}}",
		},
		"volume bound by the binder": {
			have: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a, annotations: {pv.kubernetes.io/bound-by-controller: \"yes\"}}, spec: {nfs: {}, claimRef: {name: c, namespace: n, uid: u, resourceVersion: \"1\"}}}",
			want: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {nfs: {}}}",
		},
		"volume reserved by its author": {
			have: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {claimRef: {name: c, namespace: n, uid: u, resourceVersion: \"1\"}}}",
			want: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {claimRef: {name: c, namespace: n}}}",
		},
		"claim bound by the binder": {
			have: `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: a
  annotations: {pv.kubernetes.io/bind-completed: "yes", pv.kubernetes.io/bound-by-controller: "yes", volume.kubernetes.io/selected-node: n, volume.kubernetes.io/storage-provisioner: p}
  managedFields:
  - {manager: kubectl, operation: Update, fieldsV1: {"f:spec": {"f:accessModes": {}}}}
  - {manager: kube-controller-manager, operation: Update, fieldsV1: {"f:spec": {"f:volumeName": {}}}}
spec: {accessModes: [ReadWriteOnce], volumeName: pvc-1, storageClassName: hub-default}
`,
			want: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce]}}",
		},
		"claim of a named volume": {
			have: `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a, managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:spec": {"f:volumeName": {}, "f:storageClassName": {}}}}]}
spec: {volumeName: nfs, storageClassName: ""}
`,
			want: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: nfs, storageClassName: ""}}`,
		},
		"aggregated ClusterRole": {
			have: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: []}, rules: [{verbs: [get]}]}",
			want: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: []}}",
		},
		"ClusterRole": {
			have: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}",
			want: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}",
		},
		"token references of a ServiceAccount": {
			have: `
apiVersion: v1
kind: ServiceAccount
metadata: {name: a, managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:secrets": {'k:{"name":"mine"}': {}}}}, {manager: kube-controller-manager, operation: Update, fieldsV1: {"f:secrets": {'k:{"name":"a-token"}': {}}}}]}
secrets: [{name: mine}, {name: a-token}]
`,
			want: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: mine}]}",
		},
		"pull Secrets that OpenShift added to a ServiceAccount": {
			have: `
apiVersion: v1
kind: ServiceAccount
metadata: {name: a, managedFields: [{manager: kubectl-create, operation: Update, fieldsV1: {"f:automountServiceAccountToken": {}}}, {manager: openshift-controller-manager, operation: Update, fieldsV1: {"f:imagePullSecrets": {}}}]}
automountServiceAccountToken: false
imagePullSecrets: [{name: a-dockercfg-x7x2b}]
`,
			want: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, automountServiceAccountToken: false}",
		},
		"pull Secrets of an author, to which OpenShift added one": {
			have: `
apiVersion: v1
kind: ServiceAccount
metadata: {name: a, managedFields: [{manager: kubectl-create, operation: Update, fieldsV1: {"f:automountServiceAccountToken": {}}}, {manager: openshift-controller-manager, operation: Update, fieldsV1: {"f:imagePullSecrets": {}}}]}
imagePullSecrets: [{name: registry}, {name: a-dockercfg-x7x2b}]
`,
			want: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: registry}]}",
		},
		"default classes of the hub": {
			reason: "nobody owns what admission chose",
			have: `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a, managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:spec": {"f:defaultBackend": {}}}}]}
spec: {ingressClassName: hub, defaultBackend: {}}
`,
			want: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {defaultBackend: {}}}",
		},
		"class of a load balancer that the author chose": {
			have: `
apiVersion: v1
kind: Service
metadata: {name: a, managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:spec": {"f:loadBalancerClass": {}}}}]}
spec: {loadBalancerClass: mine}
`,
			want: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {loadBalancerClass: mine}}",
		},
		"annotations and labels of controllers": {
			reason: "a load balancer of the hub would be used by a member; the author's values stay, as do those of webhooks",
			have: `
apiVersion: v1
kind: Service
metadata:
  name: a
  annotations: {example.com/mine: x, example.com/both: x, example.com/webhook: x, loadbalancer.openstack.org/load-balancer-id: "1", example.com/vip-host: n1}
  labels: {app: a, example.com/by-controller: x, example.com/by-reporter: x}
  managedFields:
  - {manager: kubectl-client-side-apply, operation: Update, fieldsV1: {"f:metadata": {"f:annotations": {"f:example.com/mine": {}, "f:example.com/both": {}}, "f:labels": {"f:app": {}}}, "f:spec": {"f:type": {}}}}
  - {manager: openstack-cloud-controller-manager, operation: Update, fieldsV1: {"f:metadata": {"f:annotations": {"f:loadbalancer.openstack.org/load-balancer-id": {}, "f:example.com/both": {}}, "f:labels": {"f:example.com/by-controller": {}}}}}
  - {manager: vip, operation: Update, fieldsV1: {"f:metadata": {"f:annotations": {"f:example.com/vip-host": {}}, "f:labels": {"f:example.com/by-reporter": {}}}}}
  - {manager: vip, operation: Update, subresource: status, fieldsV1: {"f:status": {"f:loadBalancer": {}}}}
spec: {type: LoadBalancer}
`,
			want: `
apiVersion: v1
kind: Service
metadata:
  name: a
  annotations: {example.com/mine: x, example.com/both: x, example.com/webhook: x}
  labels: {app: a, example.com/by-reporter: x}
spec: {type: LoadBalancer}
`,
		},
		"annotations of a manager that writes the content and the status": {
			have: `
apiVersion: example.com/v1
kind: Thing
metadata:
  name: a
  annotations: {example.com/mine: x}
  managedFields:
  - {manager: platform, operation: Update, fieldsV1: {"f:metadata": {"f:annotations": {"f:example.com/mine": {}}}, "f:spec": {"f:size": {}}}}
  - {manager: platform, operation: Update, subresource: status, fieldsV1: {"f:status": {"f:ready": {}}}}
spec: {size: 1}
`,
			want: "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, annotations: {example.com/mine: x}}, spec: {size: 1}}",
		},
		"annotations of operators that managed fields do not show": {
			have: `
apiVersion: example.com/v1
kind: Thing
metadata:
  name: a
  annotations: {kopf.zalando.org/last-handled-configuration: "{}", serving.knative.dev/creator: admin, crossplane.io/external-create-pending: t, crossplane.io/external-name: mine, kapp.k14s.io/original: "{}"}
  labels: {kapp.k14s.io/app: "1"}
`,
			want: "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, annotations: {crossplane.io/external-name: mine}}}",
		},
		"labels that OpenShift set on a namespace": {
			have: `
apiVersion: v1
kind: Namespace
metadata:
  name: a
  labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: baseline}
  managedFields:
  - {manager: kubectl-label, operation: Update, fieldsV1: {"f:metadata": {"f:labels": {"f:pod-security.kubernetes.io/warn": {}}}}}
  - {manager: pod-security-admission-label-synchronization-controller, operation: Apply, fieldsV1: {"f:metadata": {"f:labels": {"f:pod-security.kubernetes.io/enforce": {}}}}}
`,
			want: "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {pod-security.kubernetes.io/warn: baseline}}}",
		},
		"address that a cloud provider chose": {
			have: `
apiVersion: v1
kind: Service
metadata: {name: a, managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:spec": {"f:type": {}}}}, {manager: kube-vip-cloud-provider, operation: Update, fieldsV1: {"f:spec": {"f:loadBalancerIP": {}}}}]}
spec: {type: LoadBalancer, loadBalancerIP: 10.1.1.1}
`,
			want: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}",
		},
		"default class of a snapshot": {
			have: `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: a, managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:spec": {"f:source": {}}}}, {manager: snapshot-controller, operation: Update, fieldsV1: {"f:spec": {"f:volumeSnapshotClassName": {}}}}]}
spec: {source: {persistentVolumeClaimName: data}, volumeSnapshotClassName: hub}
`,
			want: "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: a}, spec: {source: {persistentVolumeClaimName: data}}}",
		},
		"operation of an Application of Argo CD": {
			have: "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a, annotations: {argocd.argoproj.io/refresh: hard}}, spec: {project: p}, operation: {sync: {}}}",
			want: "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}, spec: {project: p}}",
		},
		"pull Secrets of an author": {
			have: `
apiVersion: v1
kind: ServiceAccount
metadata: {name: a, managedFields: [{manager: kubectl-create, operation: Update, fieldsV1: {"f:imagePullSecrets": {}}}]}
imagePullSecrets: [{name: registry}]
`,
			want: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: registry}]}",
		},
		"replicas of an autoscaler": {
			reason: "kubectl recorded the author's number",
			have: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"replicas":2}}'}
  managedFields: [{manager: kubectl-client-side-apply, operation: Update, fieldsV1: {"f:spec": {"f:template": {}}}}, {manager: kube-controller-manager, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}]
spec: {replicas: 5, template: {}}
`,
			want: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2, template: {}}}",
		},
		"replicas set only by an autoscaler": {
			have: `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a, managedFields: [{manager: kube-controller-manager, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}]}
spec: {replicas: 5, template: {}}
`,
			want: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {template: {}}}",
		},
		"replicas scaled by a user": {
			have: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, managedFields: [{manager: kubectl, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}]}
spec: {replicas: 5}
`,
			want: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 5}}",
		},
		"Job with manualSelector": {
			have: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}",
			want: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parse(t, tc.have)
			Strip(got)
			if diff := cmp.Diff(text(t, parse(t, tc.want)), text(t, got)); diff != "" {
				t.Errorf("%s\nStrip() (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
