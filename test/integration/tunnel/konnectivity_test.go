// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	konnectivityclient "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// frontendAudience is the audience of frontends' tokens, as in docs/reference/operations.md.
const frontendAudience = "frontends.tunnel.fleetgate.io"

// The suite uses the gateway's own listeners with the tokens and RBAC of a real hub.
var _ = Describe("A gateway that speaks Konnectivity", Ordered, Label("matrix"), func() {
	const dialer = "dialer"
	var (
		f         *fleet.Fleet
		hub       kubernetes.Interface
		frontends string
		config    *tls.Config
	)
	agentNamespace := clusterv1beta1.MemberNamespace(member)

	BeforeAll(func(ctx SpecContext) {
		ports, err := env.FreePorts(1)
		Expect(err).NotTo(HaveOccurred())
		frontends = fmt.Sprintf("127.0.0.1:%d", ports[0])
		configuration, err := env.ConfigFlag(GinkgoT().TempDir(), configv1alpha1.GatewayKind,
			fmt.Sprintf("tunnels: {konnectivity: {agents: true, frontendsAddress: %q}}", frontends))
		Expect(err).NotTo(HaveOccurred())
		f = start(ctx, fleet.Options{
			Members: []string{member}, Tunnel: fleet.TunnelKonnectivity, GatewayArgs: []string{configuration},
		})
		ca, err := f.TunnelCA()
		Expect(err).NotTo(HaveOccurred())
		config = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost", MinVersion: tls.VersionTLS13}
		Expect(config.RootCAs.AppendCertsFromPEM(ca)).To(BeTrue())
		hub, err = kubernetes.NewForConfig(f.Hub.Config())
		Expect(err).NotTo(HaveOccurred())
		mayDial(ctx, hub, dialer)
	})

	// dial uses upstream's client library for several connections with one token.
	dial := func(ctx context.Context, token, address string) (net.Conn, error) {
		reusable, err := konnectivityclient.CreateGRPCTunnel(ctx, "passthrough:///"+frontends,
			grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithPerRPCCredentials(bearer(token)))
		if err != nil {
			return nil, err
		}
		DeferCleanup(func() { _ = reusable.Close() })
		return reusable.DialContext(ctx, "tcp", address)
	}

	It("lets upstream's client reach the member's API server", func(ctx SpecContext) {
		token := tokenFor(ctx, hub, metav1.NamespaceDefault, dialer, frontendAudience)
		through := f.Members[0].Cluster.Config()
		through.Dial = func(context.Context, string, string) (net.Conn, error) { return dial(ctx, token, member+":443") }
		api, err := kubernetes.NewForConfig(through)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error {
			_, err := api.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
			return err
		}).WithContext(ctx).Should(Succeed())
		_, err = dial(ctx, token, "member-2:443")
		Expect(err).To(MatchError(ContainSubstring("cannot create tunnels/dial")))
	})

	It("rejects each credential at the wrong port", func(ctx SpecContext) {
		for _, audience := range []string{tunnelv1alpha1.TokenAudience, ""} {
			_, err := dial(ctx, tokenFor(ctx, hub, agentNamespace, clusterv1beta1.AgentAccount, audience), member+":443")
			Expect(err).To(HaveOccurred(), "a frontend's dial with a token for audience %q", audience)
			Expect(connectStatus(frontends, config, tokenFor(ctx, hub, agentNamespace, clusterv1beta1.AgentAccount, audience))).
				To(Equal(http.StatusProxyAuthRequired))
		}
		for _, audience := range []string{frontendAudience, ""} {
			token := tokenFor(ctx, hub, agentNamespace, clusterv1beta1.AgentAccount, audience)
			_, err := (&tunnel.HubDialer{
				URL: "https://" + f.AgentsAddress() + "/apis/" + tunnelv1alpha1.GroupVersion.String() + "/tunnels/" + member + "/proxy",
				TLS: config, Token: func(context.Context) (string, error) { return token, nil },
			}).Dial(ctx)
			var refused *tunnel.HubError
			Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
			Expect(refused.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(status.Code(connectAgent(ctx, f.AgentsAddress(), config, token))).To(Equal(codes.Unauthenticated))
		}
	})

	It("serves upstream's agent in place of ours", func(ctx SpecContext) {
		ours := f.Members[0].Agent
		Expect(ours.Stop(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(ours.Start(ctx)).To(Succeed()) })
		through := f.Members[0].Cluster.Config()
		at, err := url.Parse(through.Host)
		Expect(err).NotTo(HaveOccurred())
		_, err = f.Kubectl(ctx, f.HubKubeconfig(), "", "annotate", "membercluster", member, clusterv1beta1.AnnotationAPIServer+"="+at.Host)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := f.Kubectl(ctx, f.HubKubeconfig(), "", "annotate", "membercluster", member, clusterv1beta1.AnnotationAPIServer+"-")
			Expect(err).NotTo(HaveOccurred())
		})

		dir := GinkgoT().TempDir()
		token := tokenFor(ctx, hub, agentNamespace, clusterv1beta1.AgentAccount, tunnelv1alpha1.TokenAudience)
		ca, err := f.TunnelCA()
		Expect(err).NotTo(HaveOccurred())
		for name, content := range map[string]string{"token": token, "ca.pem": string(ca)} {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
		}
		_, port, err := net.SplitHostPort(f.AgentsAddress())
		Expect(err).NotTo(HaveOccurred())
		ports, err := env.FreePorts(2)
		Expect(err).NotTo(HaveOccurred())
		theirs, err := env.NewProcess(env.ProcessOptions{
			Name: "konnectivity-agent", Dir: dir, Path: upstreamsProgram("agent"),
			Args: []string{
				"--ca-cert=" + filepath.Join(dir, "ca.pem"), "--service-account-token-path=" + filepath.Join(dir, "token"),
				"--proxy-server-host=localhost", "--proxy-server-port=" + port,
				fmt.Sprintf("--admin-server-port=%d", ports[0]), fmt.Sprintf("--health-server-port=%d", ports[1]), "--health-server-host=127.0.0.1",
			},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(theirs.Start(ctx)).To(Succeed())
		DeferCleanup(theirs.Stop)

		dialers := tokenFor(ctx, hub, metav1.NamespaceDefault, dialer, frontendAudience)
		through.Dial = func(context.Context, string, string) (net.Conn, error) { return dial(ctx, dialers, member+":443") }
		api, err := kubernetes.NewForConfig(through)
		Expect(err).NotTo(HaveOccurred())
		list := func() error {
			_, err := api.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			return err
		}
		Eventually(list).WithContext(ctx).Should(Succeed())
		for range 50 {
			Expect(list()).To(Succeed())
		}
	})

	It("ends the agent's tunnel within seconds when its credential is revoked", func(ctx SpecContext) {
		tunnelPath := func(ctx context.Context) (string, error) { return tunnelPath(ctx, f.Members[0]) }
		Eventually(tunnelPath).WithContext(ctx).Should(Equal("konnectivity"))
		Expect(hub.CoreV1().Secrets(agentNamespace).Delete(ctx, clusterv1beta1.AgentCredentialSecret, metav1.DeleteOptions{})).To(Succeed())
		Eventually(tunnelPath).WithContext(ctx).WithTimeout(15*time.Second).Should(BeEmpty(), "the tunnel was not ended")
	})
})

// mayDial creates an account with the right to dial into the member.
func mayDial(ctx context.Context, hub kubernetes.Interface, account string) {
	GinkgoHelper()
	_, err := hub.CoreV1().ServiceAccounts(metav1.NamespaceDefault).
		Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = hub.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{tunnelv1alpha1.GroupName}, Resources: []string{"tunnels/dial"}, Verbs: []string{"create"}, ResourceNames: []string{member},
		}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = hub.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: account}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// tokenFor requests a token for an audience; an empty one is the hub's API server.
func tokenFor(ctx context.Context, hub kubernetes.Interface, namespace, account, audience string) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	answer, err := hub.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return answer.Status.Token
}

// bearer sends a token with each stream.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// connectStatus returns the response to a CONNECT to the member.
func connectStatus(address string, config *tls.Config, token string) (int, error) {
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer %s\r\n\r\n", member, token); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// connectAgent opens a stream as upstream's agent does, and returns how it ends.
func connectAgent(ctx context.Context, address string, config *tls.Config, token string) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "agentID", "a", "authorization", "Bearer "+token)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "Connect", ServerStreams: true, ClientStreams: true}, "/AgentService/Connect")
	if err != nil {
		return err
	}
	return stream.RecvMsg(new(client.Packet))
}
