// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/serviceaccount/agent/impersonation"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

const (
	proxyPrefix = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/"
	serviceName = "gateway"
	// endpointName is the host name of the gateway's own endpoint.
	endpointName = "localhost"
)

// runningGateway is the part of a gateway that this suite tests.
type runningGateway struct {
	address  string
	ca       []byte
	registry *tunnel.Registry
	cancel   context.CancelFunc
	done     []chan error
}

// startGateway runs the API server with exactly the rights that it needs on the hub, and registers
// it there.
func startGateway(ctx context.Context) *runningGateway {
	GinkgoHelper()
	config := gatewayConfig(ctx)
	running, cancel := context.WithCancel(context.Background())
	g := &runningGateway{cancel: cancel}
	informers, err := cache.New(config, cache.Options{Scheme: testScheme()})
	Expect(err).NotTo(HaveOccurred())
	g.run(func() error { return informers.Start(running) })
	informer, err := informers.GetInformer(ctx, &clusterv1beta1.MemberCluster{})
	Expect(err).NotTo(HaveOccurred())
	members := clustergateway.NewInventory()
	synced, _, err := members.Follow(informer)
	Expect(err).NotTo(HaveOccurred())
	Eventually(synced).Should(BeTrue())

	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	credentials := credentials.NewCredentials(clientset)
	credentials.Changed = members.SetCredential
	g.run(func() error { return credentials.Start(running) })
	g.registry, err = tunnel.NewRegistry(tunnel.Options{})
	Expect(err).NotTo(HaveOccurred())

	certificate, key, err := certutil.GenerateSelfSignedCertKey(serviceName+"."+clusterv1beta1.SystemNamespace+".svc", nil, []string{endpointName})
	Expect(err).NotTo(HaveOccurred())
	serving, err := dynamiccertificates.NewStaticCertKeyContent("test", certificate, key)
	Expect(err).NotTo(HaveOccurred())
	completed, err := apiserver.Config{
		Hub: config, Address: "127.0.0.1:0", Certificate: serving,
		Config: clustergateway.Config{
			Members: members, Dialer: g.registry, Liveness: losing{g.registry}, NotConnected: tunnel.ErrNotConnected, Unresponsive: tunnel.ErrUnresponsive,
			Credentials: clustergateway.CredentialsFunc(func(member string) (clustergateway.Credential, error) {
				credential, err := credentials.Credential(member)
				return clustergateway.Credential(credential), err
			}),
			AuthorizeMemberRequests: true,
			MemberGroups:            map[string]string{"kubeadm:cluster-admins": administrators},
		},
		Tunnels: g.registry.UpgradeHandler, IsAgentOf: (&identity.Identities{Reader: informers, Seats: identity.FleetSeats()}).IsAgentOf,
	}.Complete()
	Expect(err).NotTo(HaveOccurred())
	server, err := completed.New(ctx)
	Expect(err).NotTo(HaveOccurred())
	g.run(func() error { return server.Run(running) })
	g.address, g.ca = server.Address().String(), certificate
	register(ctx, g)
	return g
}

// losing is a registry that expects one member not to reconnect.
type losing struct{ *tunnel.Registry }

func (losing) Expected(name string) bool { return name != lostName }

func (g *runningGateway) run(f func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	g.done = append(g.done, done)
}

func (g *runningGateway) stop() {
	GinkgoHelper()
	g.cancel()
	for _, done := range g.done {
		Eventually(done).Should(Receive(BeNil()))
	}
	_ = g.registry.Close(context.Background())
}

// gatewayConfig is the gateway's client configuration for the hub.
func gatewayConfig(ctx context.Context) *rest.Config {
	GinkgoHelper()
	const name = "fleetgate:gateway"
	expect.Created(ctx, hubClient, allow(name, []rbacv1.PolicyRule{
		{APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}},
	}, user(name))...)
	expect.Created(ctx, hubClient, bind("gateway-delegates", "system:auth-delegator", user(name)), &rbacv1.RoleBinding{
		ObjectMeta: build.In("kube-system", "gateway-reads-front-proxy"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		Subjects:   []rbacv1.Subject{user(name)},
	})
	config, err := hub.ConfigFor(name)
	Expect(err).NotTo(HaveOccurred())
	return config
}

func register(ctx context.Context, g *runningGateway) {
	GinkgoHelper()
	_, port, err := net.SplitHostPort(g.address)
	Expect(err).NotTo(HaveOccurred())
	number, err := net.LookupPort("tcp", port)
	Expect(err).NotTo(HaveOccurred())
	installer := &install.Installer{
		Client: hubClient, Version: "0.1.0", Clock: clock.RealClock{},
		APIs: []install.GroupVersion{{Group: "cluster.core.oam.dev", Version: "v1alpha1"}, {Group: "tunnel.fleetgate.io", Version: "v1alpha1"}},
		Hub: install.Hub{
			Namespace: clusterv1beta1.SystemNamespace, Service: serviceName, ExternalName: "localhost", APIPort: int32(number), CABundle: g.ca,
		},
	}
	Expect(installer.InstallBase(ctx)).To(Succeed())
	Expect(installer.InstallServing(ctx)).To(Succeed())
	for _, name := range []string{"v1alpha1.cluster.core.oam.dev", "v1alpha1.tunnel.fleetgate.io"} {
		Eventually(func(e Gomega) {
			var service apiregistrationv1.APIService
			e.Expect(hubClient.Get(ctx, types.NamespacedName{Name: name}, &service)).To(Succeed())
			e.Expect(service.Status.Conditions).To(ContainElement(And(
				HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionTrue))), "%v", service.Status.Conditions)
		}).Should(Succeed())
	}
}

// runningAgent is the part of an agent that this suite tests.
type runningAgent struct {
	cancel context.CancelFunc
	done   chan error
	own    chan error
}

// startAgent opens the tunnel through the hub's API server as the member's account, and reports the
// gateway's token.
func startAgent(ctx context.Context) *runningAgent {
	GinkgoHelper()
	expect.Created(ctx, memberClient,
		&corev1.Namespace{ObjectMeta: build.Named(authenticationv1beta1.AccountNamespace)},
		&corev1.ServiceAccount{ObjectMeta: build.In(authenticationv1beta1.AccountNamespace, authenticationv1beta1.GatewayAccount)})
	rotate(ctx)
	grants = (&impersonation.Grants{Client: memberClient, Member: member.Config(), AccountNamespace: authenticationv1beta1.AccountNamespace}).Handler()
	return connectAgent(memberName)
}

// connectAgent runs the agent of a member with that name. All members are the same cluster.
func connectAgent(name string) *runningAgent {
	GinkgoHelper()
	target, err := url.Parse(member.URL)
	Expect(err).NotTo(HaveOccurred())
	own := tunnel.NewListener(tunnel.Agent)
	connector := &tunnel.Connector{
		Member: name,
		Dial:   tunnelDialer(name, name).Dial,
		Targets: map[string]tunnel.Target{
			tunnel.APIServer: tunnel.TCP(target.Host),
			tunnel.Agent:     own.Target(),
		},
	}
	running, cancel := context.WithCancel(context.Background())
	a := &runningAgent{cancel: cancel, done: make(chan error, 1), own: make(chan error, 1)}
	server := &http.Server{Handler: grants}
	go func() { a.done <- connector.Run(running) }()
	go func() { a.own <- server.Serve(own) }()
	context.AfterFunc(running, func() { _ = server.Close() })
	return a
}

func (a *runningAgent) stop() {
	GinkgoHelper()
	a.cancel()
	Eventually(a.done).Should(Receive(BeNil()))
	Eventually(a.own).Should(Receive(MatchError(http.ErrServerClosed)))
}

// tunnelDialer dials the tunnel of a member as the agent of another member.
func tunnelDialer(of, as string) *tunnel.HubDialer {
	GinkgoHelper()
	tls, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: hub.CABundle}})
	Expect(err).NotTo(HaveOccurred())
	return &tunnel.HubDialer{
		URL: hub.URL + "/apis/tunnel.fleetgate.io/v1alpha1/tunnels/" + of + "/proxy",
		TLS: tls,
		Token: func(ctx context.Context) (string, error) {
			return tokenOf(ctx, hub, clusterv1beta1.MemberNamespace(as), clusterv1beta1.AgentAccount)
		},
	}
}

func awaitTunnel(name string) {
	GinkgoHelper()
	Eventually(served.registry.Connected).WithArguments(name).Should(BeTrue())
}

func tokenOf(ctx context.Context, of *env.Cluster, namespace, name string) (string, error) {
	clientset, err := kubernetes.NewForConfig(of.Config())
	if err != nil {
		return "", err
	}
	request, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

// rotate reports a new token of the gateway's account to the hub and returns it.
func rotate(ctx context.Context) string {
	GinkgoHelper()
	token, err := tokenOf(ctx, member, authenticationv1beta1.AccountNamespace, authenticationv1beta1.GatewayAccount)
	Expect(err).NotTo(HaveOccurred())
	report(ctx, memberName, token, member.CABundle)
	return token
}

// report writes the token and CA of a member to the hub, as the rotator does.
func report(ctx context.Context, name, token string, ca []byte) {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1beta1.MemberNamespace(name), Name: authenticationv1beta1.GatewayAccount,
			Labels: map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue},
		},
		Data: map[string][]byte{authenticationv1beta1.SecretKeyToken: []byte(token), authenticationv1beta1.SecretKeyCA: ca},
	}
	if err := hubClient.Create(ctx, secret); err != nil {
		Expect(hubClient.Update(ctx, secret)).To(Succeed())
	}
}

// configFor is a client configuration for the member: the hub's, with a longer server URL.
func configFor(member, name string, groups ...string) *rest.Config {
	GinkgoHelper()
	config, err := hub.ConfigFor(name, groups...)
	Expect(err).NotTo(HaveOccurred())
	config.Host += proxyPrefix + member + "/proxy"
	return config
}

func clientsetFor(config *rest.Config) kubernetes.Interface {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return clientset
}

// kubectl runs the real kubectl with a client configuration.
func kubectl(ctx context.Context, config *rest.Config, stdin string, arguments ...string) (stdout, stderr string, err error) {
	GinkgoHelper()
	program, err := env.Kubectl(arguments...)
	Expect(err).NotTo(HaveOccurred())
	home := GinkgoT().TempDir()
	path := filepath.Join(home, "kubeconfig")
	Expect(env.WriteKubeconfig(path, config)).To(Succeed())
	command := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", path}, arguments...)...)
	command.Env = append(os.Environ(), "HOME="+home)
	var out, errs bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &out, &errs
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred())
	}
	return out.String(), errs.String(), err
}

// must runs kubectl and fails the spec on an error.
func must(ctx context.Context, config *rest.Config, stdin string, arguments ...string) string {
	GinkgoHelper()
	stdout, stderr, err := kubectl(ctx, config, stdin, arguments...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(arguments, " "), stderr)
	return stdout
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
