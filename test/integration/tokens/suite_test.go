// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokens_test tests tokens of the service accounts of two real members on a real hub: the
// agent's rotator and grants with their actual rights, and the gateway's credentials.
package tokens_test

import (
	"bytes"
	"context"
	"flag"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/pkg/telemetry/logs"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/mutation"
)

const (
	memberName   = "m1"
	hubNamespace = clusterv1beta1.MemberNamespacePrefix + memberName
	// longestOnMember is the longest lifetime that the first member's API server grants.
	longestOnMember = 2 * time.Hour
)

// place is a real member and its namespace on the hub.
type place struct {
	name string
	// namespace is the member's namespace on the hub.
	namespace string
	// accounts is the namespace on the member for the agent's accounts.
	accounts string
	cluster  *env.Cluster
	client   client.Client
}

var (
	hub       *env.Cluster
	hubClient client.Client
	// first and second are the members. Most specs need only the first: member is its cluster,
	// memberClient its client.
	first, second *place
	member        *env.Cluster
	memberClient  client.Client
	scheme        *runtime.Scheme
	// written is the log of all components at the highest verbosity.
	written = &logBuffer{}
)

func TestTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "Tokens of members", Label("integration", "tokens"))
}

var _ = artifacts.Report()

var _ = BeforeSuite(func(ctx SpecContext) {
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(logs.MaxVerbosity), textlogger.Output(written)))
	// The client uses the process' verbosity, not its logger's.
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	Expect(flags.Set("v", strconv.Itoa(logs.MaxVerbosity))).To(Succeed())
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	ctrl.SetLogger(logger)

	clusters, err := env.StartAll(ctx, env.Options{Name: "hub"}, env.Options{
		Name: memberName, APIServerFlags: []string{"--service-account-max-token-expiration=" + longestOnMember.String()},
	}, env.Options{
		Name: "m2", APIServerFlags: []string{"--feature-gates=ConstrainedImpersonation=false"},
	})
	Expect(err).NotTo(HaveOccurred())
	hub = clusters[0]
	DeferCleanup(func(ctx SpecContext) {
		for _, cluster := range clusters {
			Expect(cluster.Stop(ctx)).To(Succeed())
		}
	})
	scheme = build.Scheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, authenticationv1beta1.AddToScheme, clusterv1beta1.AddToScheme)
	hubClient = expect.Client(hub.Config(), scheme)
	first, second = placeOf(clusters[1], authenticationv1beta1.AccountNamespace), placeOf(clusters[2], "accounts-of-the-hub")
	member, memberClient = first.cluster, first.client
	prepareHub(ctx)
	for _, p := range []*place{first, second} {
		p.prepareHub(ctx)
		p.prepareMember(ctx)
	}
	awaitPolicies(ctx)
})

func placeOf(cluster *env.Cluster, accounts string) *place {
	GinkgoHelper()
	return &place{
		name: cluster.Name, namespace: clusterv1beta1.MemberNamespace(cluster.Name), accounts: accounts,
		cluster: cluster, client: expect.Client(cluster.Config(), scheme),
	}
}

// prepareHub installs what the gateway installs.
func prepareHub(ctx context.Context) {
	GinkgoHelper()
	definitions, err := crds.ForHub(authenticationv1beta1.GroupName, clusterv1beta1.GroupVersion.Group)
	Expect(err).NotTo(HaveOccurred())
	installer := &install.Installer{
		Client: hubClient, Definitions: definitions, Version: "v0.1.0", Clock: clock.RealClock{},
		Extra: mutation.Left(append(policies.Members(policies.Parameters{TokenLifetime: time.Hour}), policies.ServiceAccounts()...)),
	}
	Expect(installer.InstallDefinitions(ctx)).To(Succeed())
	Expect(installer.InstallServing(ctx)).To(Succeed())
}

// prepareHub creates what joining creates.
func (p *place) prepareHub(ctx context.Context) {
	GinkgoHelper()
	objectMeta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: p.namespace, Name: name} }
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}},
		&corev1.ServiceAccount{ObjectMeta: objectMeta(clusterv1beta1.AgentAccount)},
		&rbacv1.Role{ObjectMeta: objectMeta("agent"), Rules: credentials.HubRules(p.name)},
		&rbacv1.RoleBinding{
			ObjectMeta: objectMeta("agent"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "agent"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace, Name: clusterv1beta1.AgentAccount}},
		},
	} {
		Expect(hubClient.Create(ctx, object)).To(Succeed())
	}
}

// awaitPolicies waits until the hub's API server enforces the policies for agents.
func awaitPolicies(ctx context.Context) {
	GinkgoHelper()
	asAgent := expect.Client(hubConfigOfAgent(ctx), scheme)
	ownerless := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "ownerless"}, Data: map[string][]byte{authenticationv1beta1.SecretKeyToken: []byte("t"), authenticationv1beta1.SecretKeyCA: []byte("c")}}
	ownerless.Labels = map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue}
	unlabelled := ownerless.DeepCopy()
	unlabelled.Labels = nil
	unlabelled.OwnerReferences = []metav1.OwnerReference{{APIVersion: authenticationv1beta1.GroupVersion.String(), Kind: "ManagedServiceAccount", Name: ownerless.Name, UID: "u"}}
	for policy, secret := range map[string]*corev1.Secret{"fleetgate-member-secrets": unlabelled, "fleetgate-agent-secrets": ownerless} {
		Eventually(func() error { return asAgent.Create(ctx, secret.DeepCopy(), client.DryRunAll) }).
			Should(MatchError(ContainSubstring(policy)), "the policies are enforced")
	}
}

// The rights that the agent needs on its own member for tokens and grants.
var memberRules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create"}},
	{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"create", "delete", "get", "list", "update", "watch"}},
	{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
	{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"bind", "create", "escalate", "get", "update"}},
	{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings"}, Verbs: []string{"create", "delete", "get", "update"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get"}},
}

// lookRule is separate: it is only needed to take over accounts of another product.
var lookRule = rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings", "rolebindings"}, Verbs: []string{"list"}}

// issueRule is separate because a spec revokes it.
var issueRule = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}

// agentOnMember is the agent's user on a member.
const agentOnMember = "fleetgate-agent"

func (p *place) prepareMember(ctx context.Context) {
	GinkgoHelper()
	for name, rules := range map[string][]rbacv1.PolicyRule{agentOnMember: memberRules, agentOnMember + "-issue": {issueRule}, agentOnMember + "-look": {lookRule}} {
		Expect(p.client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})).To(Succeed())
		Expect(p.client.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: agentOnMember}},
		})).To(Succeed())
	}
}

// logBuffer collects lines from several goroutines.
type logBuffer struct {
	lock   sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.buffer.Write(line)
}

func (b *logBuffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.buffer.String()
}
