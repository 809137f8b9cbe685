// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	runtimemanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/addon/agent/registration"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/work/agent/manifestwork"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// member is a member with our agent. The hub is its own member here: only the namespaces differ.
type member struct {
	name string
	// namespace is that of the agent, addOns that of the agents of add-ons.
	namespace, addOns string
	clock             *clocktesting.FakePassiveClock
	agent             *expect.Running
}

// accountUser is the user that is the agent's account, certifiedUser that in its certificate.
func accountUser(cluster string) string {
	return "system:serviceaccount:fleet-member-" + cluster + ":agent"
}

func certifiedUser(cluster string) string {
	return "system:open-cluster-management:" + cluster + ":fleetgate"
}

// joined makes a cluster of the bed a member that the hub has accepted.
func (b *bed) joined(ctx context.Context, cluster string) *member {
	GinkgoHelper()
	m := &member{name: b.name(cluster), namespace: b.name(cluster + "-agent"), addOns: b.name(cluster + "-addons"), clock: clocktesting.NewFakePassiveClock(time.Now())}
	for _, namespace := range []string{m.namespace, m.addOns, clusterv1beta1.MemberNamespace(m.name)} {
		expect.Created(ctx, hubClient, build.Namespace(namespace))
	}
	mirrored := &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(m.name)}
	mirrored.Spec.Identity = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: clusterv1beta1.MemberNamespace(m.name), Name: "agent"}
	expect.CreatedForSpec(ctx, hubClient, mirrored)
	Expect(hubClient.Patch(ctx, build.Namespace(m.name), expect.MergePatch(`{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"`+m.name+`"}}}`))).To(Succeed())
	Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(m.name)}, expect.MergePatch(`{"metadata":{"annotations":{"`+membermirror.MemberAnnotation+`":"`+string(mirrored.UID)+`"}}}`))).To(Succeed())
	m.accepted(ctx, metav1.ConditionTrue)
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	}
	expect.Created(ctx, hubClient, &rbacv1.RoleBinding{
		ObjectMeta: build.In(m.name, "registration"), Subjects: []rbacv1.Subject{user(accountUser(m.name))},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "open-cluster-management:managedcluster:registration"},
	})
	expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRoleBinding{
		ObjectMeta: build.Named(m.name), Subjects: []rbacv1.Subject{user(accountUser(m.name)), user(certifiedUser(m.name))},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "requests"},
	})
	m.allowed(ctx, m.namespace, "get", "create", "update", "delete")
	m.allowed(ctx, m.addOns, "get", "create", "patch", "delete")
	return m
}

// accepted sets the hub's decision about the cluster.
func (m *member) accepted(ctx context.Context, status metav1.ConditionStatus) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{}
	Expect(hubClient.Get(ctx, client.ObjectKey{Name: m.name}, cluster)).To(Succeed())
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionHubAccepted, Status: status, Reason: "Said"})
	Expect(hubClient.Status().Update(ctx, cluster)).To(Succeed())
}

// allowed grants the agent rights to Secrets of a namespace of the member.
func (m *member) allowed(ctx context.Context, namespace string, verbs ...string) {
	GinkgoHelper()
	role, binding := build.Grant(namespace, "agent", "agent-of-"+m.name, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}})
	expect.Created(ctx, hubClient, role, binding)
}

func clientOf(user string, groups ...string) client.Client {
	GinkgoHelper()
	config, err := hub.ConfigFor(user, groups...)
	Expect(err).NotTo(HaveOccurred())
	return expect.Client(build.Unlimited(config), kinds())
}

// requests is how the agent creates requests, with its own certificate.
func (m *member) requests() certificatesv1client.CertificateSigningRequestInterface {
	GinkgoHelper()
	config, err := hub.ConfigFor(certifiedUser(m.name), "system:open-cluster-management:"+m.name, "system:open-cluster-management:managed-clusters")
	Expect(err).NotTo(HaveOccurred())
	clientset, err := kubernetes.NewForConfig(build.Unlimited(config))
	Expect(err).NotTo(HaveOccurred())
	return clientset.CertificatesV1().CertificateSigningRequests()
}

// start runs the agent's part, with the agent's rights on the hub and on the member.
func (m *member) start(driver addonv1alpha1.KubeClientDriver) {
	GinkgoHelper()
	account, err := hub.ConfigFor(accountUser(m.name))
	Expect(err).NotTo(HaveOccurred())
	requests, skip := m.requests(), true
	running := expect.Started(func(context.Context) (func(context.Context) error, error) {
		mgr, err := ctrl.NewManager(build.Unlimited(account), ctrl.Options{
			Scheme: kinds(), Metrics: server.Options{BindAddress: "0"},
			Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{m.name: {}}}, Controller: config.Controller{SkipNameValidation: &skip},
		})
		if err != nil {
			return nil, err
		}
		return mgr.Start, (&registration.Reconciler{
			Hub: mgr.GetClient(), Cluster: m.name, Driver: driver, Clock: m.clock, Interval: 500 * time.Millisecond,
			Requests: func(context.Context) (certificatesv1client.CertificateSigningRequestInterface, error) {
				return requests, nil
			},
			Server:  clientcmdapi.Cluster{Server: hub.URL, CertificateAuthorityData: hub.CABundle},
			Secrets: &registration.Secrets{Member: clientOf("agent-of-" + m.name), Namespace: m.namespace},
		}).SetupWithManager(mgr)
	})
	m.agent = running
	DeferCleanup(running.Stop)
}

// install creates the add-on of the bed on the cluster.
func (b *bed) install(ctx context.Context, cluster string) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(b.name(cluster), b.name("addon"))}
	expect.Created(ctx, hubClient, addOn)
	return addOn
}

// secret is a Secret of add-ons on the member, without data if it does not exist.
func (m *member) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, client.IgnoreNotFound(hubClient.Get(ctx, client.ObjectKey{Namespace: m.addOns, Name: name}, secret))
}

func (m *member) keys(ctx context.Context, name string) ([]string, error) {
	secret, err := m.secret(ctx, name)
	return slices.Sorted(maps.Keys(secret.Data)), err
}

// recorded are the add-ons in the agent's record.
func (m *member) recorded(ctx context.Context) ([]string, error) {
	record := &corev1.Secret{}
	err := hubClient.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: registration.RecordSecret}, record)
	return slices.Sorted(maps.Keys(record.Data)), client.IgnoreNotFound(err)
}

// as is a client with the kubeconfig in a Secret, like the agent of the add-on that mounts it.
func (m *member) as(ctx context.Context, name string) client.Client {
	GinkgoHelper()
	secret, err := m.secret(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	for key, content := range secret.Data {
		Expect(os.WriteFile(filepath.Join(dir, key), content, 0o600)).To(Succeed())
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	return expect.Client(build.Unlimited(config), kinds())
}

// mayRead returns whether the add-on's agent has the rights that the manager granted.
func mayRead(as client.Client, namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		return as.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
	}
}

// requestsOf are the requests of an add-on.
func requestsOf(ctx context.Context, addOn string) ([]certificatesv1.CertificateSigningRequest, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	err := hubClient.List(ctx, list, client.MatchingLabels{"open-cluster-management.io/addon-name": addOn})
	return list.Items, err
}

// account is the account of the add-on's agent, or nil.
func (b *bed) account(ctx context.Context, cluster string) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	err := hubClient.Get(ctx, client.ObjectKey{Namespace: b.name(cluster), Name: b.name("addon") + "-agent"}, account)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return account, err
}

// requestFor is a request for a certificate of an add-on of one cluster, with the label of another.
func requestFor(cluster, addOn, label string) *certificatesv1.CertificateSigningRequest {
	GinkgoHelper()
	return requestOf(label, addOn, pkix.Name{CommonName: groupOf(cluster, addOn) + ":agent:" + addOn, Organization: []string{groupOf(cluster, addOn)}})
}

// requestOf is a request of an add-on of a cluster for a certificate with any subject.
func requestOf(label, addOn string, subject pkix.Name) *certificatesv1.CertificateSigningRequest {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	Expect(err).NotTo(HaveOccurred())
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "addon-" + label + "-", Labels: map[string]string{
			"open-cluster-management.io/cluster-name": label, "open-cluster-management.io/addon-name": addOn,
		}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: hubSigner, ExpirationSeconds: ptr.To[int32](86400),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
}

func tokenRequest() *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
}

// appliesWorks runs the agent's part that applies the ManifestWorks of the cluster.
func (m *member) appliesWorks() {
	GinkgoHelper()
	skip := true
	running := expect.Started(func(ctx context.Context) (func(context.Context) error, error) {
		mgr, err := ctrl.NewManager(build.Unlimited(hub.Config()), ctrl.Options{
			Scheme: kinds(), Metrics: server.Options{BindAddress: "0"},
			Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{m.name: {}}}, Controller: config.Controller{SkipNameValidation: &skip},
		})
		if err != nil {
			return nil, err
		}
		reached, err := engine.NewMember(hub.Config())
		if err != nil {
			return nil, err
		}
		if err := mgr.Add(runtimemanager.RunnableFunc(reached.Watcher.Run)); err != nil {
			return nil, err
		}
		works, err := manifestwork.New(manifestwork.Options{Cluster: m.name, HubURL: hub.Config().Host + "/" + m.name, AgentID: m.name, MemberAPI: reached, Tuning: engine.Tuning{Unwatched: time.Second}})
		if err != nil {
			return nil, err
		}
		return mgr.Start, works.SetupWithManager(ctx, mgr)
	})
	DeferCleanup(running.Stop)
}

// eventsAbout are the notes of the events about a request.
func eventsAbout(ctx context.Context, name string) ([]string, error) {
	list := &eventsv1.EventList{}
	err := hubClient.List(ctx, list)
	var notes []string
	for i := range list.Items {
		if list.Items[i].Regarding.Name == name {
			notes = append(notes, list.Items[i].Note)
		}
	}
	return notes, err
}
