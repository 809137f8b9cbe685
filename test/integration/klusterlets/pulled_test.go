// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/program"
)

// applicationSets is the account of Argo CD's controller.
const applicationSets = "system:serviceaccount:gitops:argocd-applicationset-controller"

// pulledFrom is the label with the Application's name on its ManifestWork.
const pulledFrom = "test.fleetgate.io/application"

// definition is the part of Argo CD's kind that is needed to store objects.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: applications.argoproj.io}
spec:
  group: argoproj.io
  names: {kind: Application, listKind: ApplicationList, plural: applications, singular: application}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// argocd has the objects that Open Cluster Management's documentation creates for Argo CD, and those
// with which an installation of Argo CD configures its controller.
const argocd = `
apiVersion: v1
kind: ConfigMap
metadata: {name: ocm-placement-generator, namespace: gitops}
data:
  apiVersion: cluster.open-cluster-management.io/v1beta1
  kind: placementdecisions
  statusListKey: decisions
  matchKey: clusterName
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ocm-placement-consumer, namespace: gitops}
rules:
- apiGroups: ["cluster.open-cluster-management.io"]
  resources: ["placementdecisions"]
  verbs: ["get", "list"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "ocm-placement-consumer:gitops", namespace: gitops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ocm-placement-consumer}
subjects: [{kind: User, name: "` + applicationSets + `"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: argocd-applicationset-controller, namespace: gitops}
rules:
- {apiGroups: [""], resources: [secrets, configmaps], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: argocd-applicationset-controller, namespace: gitops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: argocd-applicationset-controller}
subjects: [{kind: User, name: "` + applicationSets + `"}]
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: pulling, namespace: gitops}
spec: {clusterSet: pulling}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: guestbook-app-placement, namespace: gitops}
spec: {numberOfClusters: 10}
`

// guestbook is the documentation's ApplicationSet for pulling members.
const guestbook = `
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: guestbook-app, namespace: gitops}
spec:
  generators:
  - clusterDecisionResource:
      configMapRef: ocm-placement-generator
      labelSelector:
        matchLabels: {cluster.open-cluster-management.io/placement: guestbook-app-placement}
      requeueAfterSeconds: 30
  template:
    metadata:
      name: '{{clusterName}}-guestbook-app'
      labels: {apps.open-cluster-management.io/pull-to-ocm-managed-cluster: "true"}
      annotations:
        argocd.argoproj.io/skip-reconcile: "true"
        apps.open-cluster-management.io/ocm-managed-cluster: '{{clusterName}}'
    spec:
      project: default
      source:
        repoURL: 'https://github.com/argoproj/argocd-example-apps.git'
        targetRevision: HEAD
        path: guestbook
      destination: {server: 'https://kubernetes.default.svc', namespace: guestbook}
      syncPolicy:
        automated: {prune: true}
        syncOptions: [CreateNamespace=true]
`

// pulling is a cluster whose agent applies ManifestWorks, with a klusterlet's credential.
type pulling struct {
	*agent
	cluster *env.Cluster
	works   *env.Process
}

// newPulling starts it, and lets it join.
func newPulling(ctx context.Context, name string) *pulling {
	GinkgoHelper()
	cluster, err := env.Start(ctx, env.Options{Name: name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(cluster.Stop(ctx)).To(Succeed()) })
	for _, manifest := range []string{definition, "{apiVersion: v1, kind: Namespace, metadata: {name: gitops}}"} {
		out, err := program.Kubectl(ctx, cluster, manifest, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
	}
	p := &pulling{agent: join(ctx, name), cluster: cluster}
	Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)},
		expect.MergePatch(`{"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": "pulling"}}}`))).To(Succeed())
	expect.Created(ctx, hubClient, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gitops", Name: name, Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster"}},
		StringData: map[string]string{"name": name, "server": "https://" + name + "-control-plane:6443", "config": "{}"},
	})
	p.startWorks(ctx)
	DeferCleanup(func(ctx SpecContext) {
		Expect(hubClient.DeleteAllOf(ctx, &workv1.ManifestWork{}, client.InNamespace(name))).To(Succeed())
		Eventually(p.applications(ctx)).Should(BeEmpty())
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)})
	})
	return p
}

func (p *pulling) startWorks(ctx context.Context) {
	GinkgoHelper()
	dir, err := os.MkdirTemp(GinkgoT().TempDir(), "agent")
	Expect(err).NotTo(HaveOccurred())
	atHub, own := filepath.Join(dir, "hub.kubeconfig"), p.config()
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: own.Host, CertificateAuthorityData: own.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"agent": {ClientCertificateData: own.CertData, ClientKeyData: own.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "agent"}},
		CurrentContext: "hub",
	}, atHub)).To(Succeed())
	atCluster, err := p.cluster.Kubeconfig("works", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	path, err := filepath.Abs(filepath.Join("..", "..", "..", ".fleetgate", "bin", "agent"))
	Expect(err).NotTo(HaveOccurred())
	p.works, err = env.NewProcess(env.ProcessOptions{Name: "agent", Dir: dir, Path: path, Args: []string{
		"--components=works", "--hub-kubeconfig=" + atHub, "--member-kubeconfig=" + atCluster, "--member-name=" + p.agent.cluster,
		"--agent-id=" + p.name, "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0",
	}})
	Expect(err).NotTo(HaveOccurred())
	Expect(p.works.Start(ctx)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(p.works.Stop(ctx)).To(Succeed()) })
}

// freeze stops the cluster, and shortens its lease so that the hub detects it early.
func (p *pulling) freeze(ctx context.Context) {
	GinkgoHelper()
	Expect(p.works.Freeze()).To(Succeed())
	Expect(p.cluster.Freeze()).To(Succeed())
	DeferCleanup(func() {
		Expect(p.cluster.Thaw()).To(Succeed())
		Expect(p.works.Thaw()).To(Succeed())
	})
	p.lasts(ctx, 1)
}

func (p *pulling) thaw(ctx context.Context) {
	GinkgoHelper()
	Expect(p.cluster.Thaw()).To(Succeed())
	Expect(p.works.Thaw()).To(Succeed())
	p.lasts(ctx, 60)
	p.renewLease(ctx, time.Now())
	p.report(ctx, metav1.ConditionTrue, "ManagedClusterAvailable")
}

// lasts sets the duration of its Lease.
func (p *pulling) lasts(ctx context.Context, seconds int) {
	GinkgoHelper()
	Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(p.agent.cluster)},
		expect.MergePatch(fmt.Sprintf(`{"spec": {"leaseDurationSeconds": %d}}`, seconds)))).To(Succeed())
}

// applications are the Applications that Argo CD on the cluster would deploy. It releases deleted ones
// after its cleanup, which is empty here.
func (p *pulling) applications(ctx context.Context) func() []string {
	return func() []string {
		going, err := program.Kubectl(ctx, p.cluster, "", "get", "applications.argoproj.io", "-n", "gitops", "-o",
			"jsonpath={.items[?(@.metadata.deletionTimestamp)].metadata.name}")
		if err != nil {
			return []string{err.Error() + ": " + going}
		}
		for _, name := range strings.Fields(going) {
			if out, err := program.Kubectl(ctx, p.cluster, "", "patch", "applications.argoproj.io", name, "-n", "gitops", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`); err != nil {
				return []string{err.Error() + ": " + out}
			}
		}
		out, err := program.Kubectl(ctx, p.cluster, "", "get", "applications.argoproj.io", "-n", "gitops", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return []string{err.Error() + ": " + out}
		}
		return strings.Fields(out)
	}
}

// generated are the Applications that Argo CD's own code generates from the ApplicationSet.
func generated(ctx context.Context) ([]unstructured.Unstructured, error) {
	kubeconfig, err := hub.Kubeconfig(applicationSets)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join("..", "..", "..", ".fleetgate", "bin", "argocd"), "generate", "-kubeconfig="+kubeconfig, "-argocd-namespace=gitops")
	var out, told bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(guestbook), &out, &told
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, told.String())
	}
	var all []map[string]any
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		return nil, err
	}
	applications := make([]unstructured.Unstructured, len(all))
	for i := range all {
		applications[i] = unstructured.Unstructured{Object: all[i]}
		applications[i].SetAPIVersion("argoproj.io/v1alpha1")
		applications[i].SetKind("Application")
	}
	return applications, nil
}

// wrapped is the ManifestWork with which a cluster pulls an Application, as Argo CD's integration with
// Open Cluster Management creates it: without hub-only fields.
func wrapped(application *unstructured.Unstructured) (*workv1.ManifestWork, error) {
	inner := application.DeepCopy()
	unstructured.RemoveNestedField(inner.Object, "status")
	cluster := inner.GetAnnotations()["apps.open-cluster-management.io/ocm-managed-cluster"]
	inner.SetAnnotations(nil)
	inner.SetLabels(nil)
	raw, err := inner.MarshalJSON()
	if err != nil {
		return nil, err
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: inner.GetName(), Labels: map[string]string{pulledFrom: inner.GetName()}}}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return work, nil
}

// pull runs that integration once and returns the names of the Applications.
func pull(ctx context.Context) ([]string, error) {
	applications, err := generated(ctx)
	if err != nil {
		return nil, err
	}
	names := sets.New[string]()
	for i := range applications {
		work, err := wrapped(&applications[i])
		if err != nil {
			return nil, err
		}
		if err := client.IgnoreAlreadyExists(hubClient.Create(ctx, work)); err != nil {
			return nil, err
		}
		names.Insert(applications[i].GetName())
	}
	var works workv1.ManifestWorkList
	if err := hubClient.List(ctx, &works, client.HasLabels{pulledFrom}); err != nil {
		return nil, err
	}
	for i := range works.Items {
		if work := &works.Items[i]; !names.Has(work.Labels[pulledFrom]) && work.DeletionTimestamp == nil {
			if err := client.IgnoreNotFound(hubClient.Delete(ctx, work)); err != nil {
				return nil, err
			}
		}
	}
	return sets.List(names), nil
}

// decide schedules Placements, like the gateway, until the spec ends.
func decide() {
	GinkgoHelper()
	account, err := hub.ConfigFor(gatewayUser)
	Expect(err).NotTo(HaveOccurred())
	skip := true
	known := build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme)
	running := expect.Started(func(context.Context) (func(context.Context) error, error) {
		mgr, err := ctrl.NewManager(build.Unlimited(account), ctrl.Options{
			Scheme: known, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		})
		if err != nil {
			return nil, err
		}
		return mgr.Start, placement.SetupDecisions(mgr, clock.RealClock{}, 2, nil)
	})
	DeferCleanup(running.Stop)
}

var _ = Describe("Applications that Argo CD generates from decisions and clusters pull", Label("matrix"), Serial, func() {
	It("move from a frozen or tainted cluster to another one", SpecTimeout(10*time.Minute), func(ctx SpecContext) {
		Expect(filepath.Join("..", "..", "..", ".fleetgate", "bin", "argocd")).To(BeAnExistingFile(), "run: make .fleetgate/bin/argocd")
		decide()
		expect.CreatedForSpec(ctx, hubClient, build.Namespace("gitops"))
		expect.CreatedForSpec(ctx, hubClient, &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("pulling")})
		out, err := program.Kubectl(ctx, hub, argocd, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		first, second := newPulling(ctx, "cluster1"), newPulling(ctx, "cluster2")
		pulled := func() ([]string, error) { return pull(ctx) }
		Eventually(pulled).Should(Equal([]string{"cluster1-guestbook-app", "cluster2-guestbook-app"}))
		Eventually(first.applications(ctx)).Should(Equal([]string{"cluster1-guestbook-app"}))
		Eventually(second.applications(ctx)).Should(Equal([]string{"cluster2-guestbook-app"}))

		By("selecting one cluster")
		out, err = program.Kubectl(ctx, hub, "", "patch", "placement", "-n", "gitops", "guestbook-app-placement", "--patch", `{"spec": {"numberOfClusters": 1}}`, "--type=merge")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(pulled).Should(Equal([]string{"cluster1-guestbook-app"}))
		Eventually(second.applications(ctx)).Should(BeEmpty())

		By("freezing it")
		first.freeze(ctx)
		Eventually(taintsOf).WithArguments(ctx, "cluster1").Should(Equal([]string{unreachable}))
		Eventually(pulled).Should(Equal([]string{"cluster2-guestbook-app"}))
		Eventually(second.applications(ctx)).Should(Equal([]string{"cluster2-guestbook-app"}))

		By("thawing it: its Application is removed, and does not return")
		first.thaw(ctx)
		Eventually(taintsOf).WithArguments(ctx, "cluster1").Should(BeEmpty())
		Eventually(first.applications(ctx)).Should(BeEmpty())
		Expect(pulled()).To(Equal([]string{"cluster2-guestbook-app"}))

		By("tainting the other")
		out, err = program.Kubectl(ctx, hub, "", "patch", "managedcluster", "cluster2", "-p", `{"spec":{"taints":[{"effect":"NoSelect","key":"maintenance"}]}}`, "--type=merge")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(pulled).Should(Equal([]string{"cluster1-guestbook-app"}))
		Eventually(first.applications(ctx)).Should(Equal([]string{"cluster1-guestbook-app"}))
		Eventually(second.applications(ctx)).Should(BeEmpty())
	})
})
