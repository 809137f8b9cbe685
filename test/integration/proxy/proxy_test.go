// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: shop}
data: {colour: %s}
`

func hubConfig(name string, groups ...string) *rest.Config {
	GinkgoHelper()
	config, err := hub.ConfigFor(name, groups...)
	Expect(err).NotTo(HaveOccurred())
	return config
}

// once requests a path through the hub without client-go's retries.
func once(ctx context.Context, config *rest.Config, path string) ([]byte, error) {
	result := clientsetFor(config).Discovery().RESTClient().Get().RequestURI(path).MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

var _ = Describe("ClusterGateways on the hub", func() {
	It("are printed with cluster-gateway's columns", func(ctx SpecContext) {
		Eventually(func() string { return must(ctx, hubConfig(editor), "", "get", "clustergateway") }).
			Should(MatchRegexp(`(?s)NAME +PROVIDER +CREDENTIAL-TYPE +ENDPOINT-TYPE +HEALTHY\n.*member-1 +ServiceAccountToken +ClusterProxy`))
		Expect(must(ctx, hubConfig(viewer), "", "get", "clustergateways", "-l", "stage=member-2", "-o", "name")).
			To(Equal("clustergateway.cluster.core.oam.dev/member-2\n"))
	})

	It("support kubectl explain once the hub has fetched their OpenAPI document", func(ctx SpecContext) {
		Eventually(func() string {
			stdout, _, _ := kubectl(ctx, hubConfig(editor), "", "explain", "clustergateway.status.healthyReason")
			return stdout
		}).WithPolling(time.Second).Should(And(ContainSubstring("KIND:       ClusterGateway"), ContainSubstring("healthyReason is the cause, as one word")))
	})

	It("send a watch event when the credential is deleted and created", func(ctx SpecContext) {
		config := hubConfig(editor)
		columns := func() string { return must(ctx, config, "", "get", "clustergateway", memberName, "--no-headers") }
		Eventually(columns).Should(ContainSubstring("ServiceAccountToken"))
		version := must(ctx, config, "", "get", "clustergateway", memberName, "-o", "jsonpath={.metadata.resourceVersion}")
		secret := &corev1.Secret{ObjectMeta: build.In(clusterv1beta1.MemberNamespace(memberName), authenticationv1beta1.GatewayAccount)}
		Expect(hubClient.Delete(ctx, secret)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { rotate(ctx) })
		Eventually(columns).ShouldNot(ContainSubstring("ServiceAccountToken"))
		rotate(ctx)
		Eventually(columns).Should(ContainSubstring("ServiceAccountToken"))

		result := clientsetFor(config).Discovery().RESTClient().Get().
			RequestURI("/apis/cluster.core.oam.dev/v1alpha1/clustergateways?watch=true&timeoutSeconds=2&resourceVersion=" + version).Do(ctx)
		told, err := result.Raw()
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(string(told), `"type":"MODIFIED"`)).To(BeNumerically(">=", 2))
	})

	It("report in subresource health whether the member answers", func(ctx SpecContext) {
		Expect(must(ctx, hubConfig(viewer), "", "get", "--raw", proxyPrefix+memberName+"/health")).To(ContainSubstring(`"healthy":true`))
		Expect(must(ctx, hubConfig(viewer), "", "get", "--raw", proxyPrefix+awayName+"/health")).To(ContainSubstring(`"healthy":false`))
	})
})

var _ = Describe("A request for a member through the hub", func() {
	It("gets the response that the seed document shows", func(ctx SpecContext) {
		Expect(must(ctx, hubConfig(editor), "", "get", "--raw", proxyPrefix+memberName+"/proxy/healthz")).To(Equal("ok"))
	})

	It("can create, get, list, apply, patch and delete with only the server URL changed", func(ctx SpecContext) {
		config := configFor(memberName, editor, team)
		must(ctx, config, fmt.Sprintf(settings, "a", "red"), "create", "-f", "-")
		Expect(must(ctx, config, "", "-n", namespace, "get", "configmap", "a", "-o", "jsonpath={.data.colour}")).To(Equal("red"))
		must(ctx, config, fmt.Sprintf(settings, "a", "green"), "apply", "-f", "-")
		must(ctx, config, fmt.Sprintf(settings, "b", "blue"), "apply", "--server-side", "-f", "-")
		Expect(must(ctx, config, "", "-n", namespace, "get", "configmaps", "-o", "name")).To(ContainSubstring("configmap/a\nconfigmap/b\n"))
		must(ctx, config, "", "-n", namespace, "patch", "configmap", "b", "--type=merge", "-p", `{"data":{"colour":"white"}}`)
		var got corev1.ConfigMap
		Expect(memberClient.Get(ctx, keyOf("b"), &got)).To(Succeed())
		Expect(got.Data).To(HaveKeyWithValue("colour", "white"))
		must(ctx, config, "", "-n", namespace, "delete", "configmap", "a", "b")
	})

	It("changes nothing with --dry-run=server", func(ctx SpecContext) {
		config := configFor(memberName, editor, team)
		Expect(must(ctx, config, fmt.Sprintf(settings, "dry", "red"), "apply", "--dry-run=server", "-f", "-")).
			To(ContainSubstring("configmap/dry created (server dry run)"))
		must(ctx, config, fmt.Sprintf(settings, "dry", "red"), "create", "--dry-run=server", "-f", "-")
		Expect(apierrors.IsNotFound(memberClient.Get(ctx, keyOf("dry"), &corev1.ConfigMap{}))).To(BeTrue())
	})

	It("ends as a watch when the right on the member is revoked, and other watches continue", func(ctx SpecContext) {
		right := bind("leaver-views", "view", user(viewer))
		expect.Created(ctx, memberClient, right)
		watched := func(user string, groups ...string) watch.Interface {
			w, err := clientsetFor(configFor(memberName, user, groups...)).CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "leaver"})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(w.Stop)
			return w
		}
		leaver, other := watched(viewer), watched(editor, team)
		Expect(memberClient.Delete(ctx, right)).To(Succeed())
		Eventually(leaver.ResultChan()).WithTimeout(90 * time.Second).Should(BeClosed())
		Expect(memberClient.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "leaver", Labels: map[string]string{"leaver": ""},
		}})).To(Succeed())
		Eventually(other.ResultChan()).Should(Receive(HaveField("Object.ObjectMeta.Name", "leaver")))
	})

	It("continues as a watch while the gateway's token rotates", func(ctx SpecContext) {
		api := clientsetFor(configFor(memberName, editor, team)).CoreV1().ConfigMaps(namespace)
		w, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: "watched"})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		for i := range 10 {
			rotate(ctx)
			name := fmt.Sprintf("watched-%d", i)
			expect.Created(ctx, memberClient, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, Labels: map[string]string{"watched": ""},
			}})
			Eventually(w.ResultChan()).Should(Receive(And(
				HaveField("Type", watch.Added), HaveField("Object.ObjectMeta.Name", name))))
			_, err := api.Get(ctx, name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	})

	It("can upgrade when the user has create", func(ctx SpecContext) {
		expect.Created(ctx, memberClient, &corev1.ConfigMap{ObjectMeta: build.In(namespace, "upgraded")})
		const path = proxyPrefix + memberName + "/proxy/api/v1/namespaces/" + namespace + "/configmaps?watch=true"
		code, reader := upgraded(editor, path)
		Expect(code).To(Equal(http.StatusSwitchingProtocols))
		// One unfragmented text frame of up to 64 KiB.
		frame := make([]byte, 4)
		_, err := io.ReadFull(reader, frame)
		Expect(err).NotTo(HaveOccurred())
		Expect(frame[:2]).To(Equal([]byte{0x81, 126}))
		event := make([]byte, int(frame[2])<<8|int(frame[3]))
		_, err = io.ReadFull(reader, event)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(event)).To(ContainSubstring(`"kind":"ConfigMap"`))

		code, _ = upgraded(viewer, path)
		Expect(code).To(Equal(http.StatusForbidden))
	})
})

// upgraded sends a WebSocket handshake by hand.
func upgraded(name, path string) (int, *bufio.Reader) {
	GinkgoHelper()
	config, err := rest.TLSConfigFor(hubConfig(name, team))
	Expect(err).NotTo(HaveOccurred())
	config.NextProtos = []string{"http/1.1"}
	host := strings.TrimPrefix(hub.URL, "https://")
	conn, err := tls.Dial("tcp", host, config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = conn.Close() })
	Expect(conn.SetDeadline(time.Now().Add(30 * time.Second))).To(Succeed())
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://%s\r\n\r\n", path, host, host)
	Expect(err).NotTo(HaveOccurred())
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, reader
}

var _ = Describe("The user that the member sees", func() {
	whoami := func(ctx context.Context, config *rest.Config) authenticationv1.UserInfo {
		GinkgoHelper()
		review, err := clientsetFor(config).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		return review.Status.UserInfo
	}

	It("is the caller with its groups", func(ctx SpecContext) {
		got := whoami(ctx, configFor(memberName, editor, team, "ops"))
		Expect(got.Username).To(Equal(editor))
		Expect(got.Groups).To(ConsistOf(team, "ops", "system:authenticated"))
	})

	It("is never taken from a header of the request", func(ctx SpecContext) {
		config := configFor(memberName, editor, team)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				r.Header.Set("X-Remote-User", "root")
				r.Header.Set("X-Remote-Group", "system:masters")
				return next.RoundTrip(r)
			})
		})
		Expect(whoami(ctx, config).Username).To(Equal(editor))

		direct := &rest.Config{
			Host:            "https://" + served.address,
			TLSClientConfig: rest.TLSClientConfig{CAData: served.ca, ServerName: serviceName + ".fleet-system.svc"},
		}
		direct.WrapTransport = config.WrapTransport
		_, err := once(ctx, direct, proxyPrefix+memberName+"/proxy/api")
		Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
	})

	It("is not the member's account of the same name", func(ctx SpecContext) {
		token, err := tokenOf(ctx, hub, namespace, "deployer")
		Expect(err).NotTo(HaveOccurred())
		config := rest.AnonymousClientConfig(configFor(memberName, editor))
		config.BearerToken = token
		got := whoami(ctx, config)
		Expect(got.Username).To(Equal("hub:system:serviceaccount:" + namespace + ":deployer"))
		Expect(got.Groups).To(ConsistOf("system:authenticated"))
	})

	It("has the rights that the member grants, and gets the member's own rejection", func(ctx SpecContext) {
		_, stderr, err := kubectl(ctx, configFor(memberName, editor), "", "-n", namespace, "get", "configmaps")
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(ContainSubstring(`Error from server (Forbidden): configmaps is forbidden: User "editor" cannot list resource "configmaps" in API group "" in the namespace "shop"`))
		must(ctx, configFor(memberName, editor, team), "", "-n", namespace, "get", "configmaps")

		By("comparing it with what the member answers without a proxy")
		rejection := func(config *rest.Config) string {
			body, err := clientsetFor(config).CoreV1().RESTClient().Get().Namespace(namespace).Resource("configmaps").Do(ctx).Raw()
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			return string(body)
		}
		direct := member.Config()
		direct.Impersonate = rest.ImpersonationConfig{UserName: editor}
		Expect(rejection(configFor(memberName, editor))).To(Equal(rejection(direct)))
	})

	It("cannot be in system:masters, and the rejection names the remedy", func(ctx SpecContext) {
		config := hub.Config()
		_, stderr, err := kubectl(ctx, config, "", "get", "--raw", proxyPrefix+memberName+"/proxy/api")
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(And(ContainSubstring("Forbidden"), ContainSubstring("use an ordinary user")))

		config.Host += proxyPrefix + memberName + "/proxy"
		_, stderr, err = kubectl(ctx, config, "", "get", "namespaces")
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(And(ContainSubstring("Error from server (Forbidden)"), ContainSubstring("use an ordinary user")))
	})

	It("is in the member's group to which the gateway maps its group", func(ctx SpecContext) {
		Expect(whoami(ctx, configFor(memberName, editor, "kubeadm:cluster-admins")).Groups).To(ConsistOf(administrators, "system:authenticated"))
	})

	It("is the gateway's account, as the rejection of an administrator says, on a member with the label", func(ctx SpecContext) {
		healthz := func(ctx context.Context) (string, error) {
			out, stderr, err := kubectl(ctx, hub.Config(), "", "get", "--raw", proxyPrefix+memberName+"/proxy/healthz")
			return out + stderr, err
		}
		said, err := healthz(ctx)
		Expect(err).To(HaveOccurred())
		label := regexp.MustCompile(`label the MemberCluster with (\S+)=(\S+),`).FindStringSubmatch(said)
		Expect(label).To(HaveLen(3), said)
		relabel := func(ctx context.Context, value string) {
			GinkgoHelper()
			mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: memberName}}
			Expect(hubClient.Patch(ctx, mc, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label[1], value)))).To(Succeed())
		}
		relabel(ctx, strconv.Quote(label[2]))
		DeferCleanup(func(ctx SpecContext) {
			relabel(ctx, "null")
			Eventually(func() error {
				_, err := once(ctx, hub.Config(), proxyPrefix+memberName+"/proxy/healthz")
				return err
			}).Should(HaveOccurred())
		})
		Eventually(healthz).WithContext(ctx).Should(Equal("ok"))
	})
})

// endpointConfig is a client configuration for the member through the gateway's own endpoint.
func endpointConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = "https://" + served.address + "/clusters/" + memberName
	config.CAData, config.ServerName = served.ca, serviceName+".fleet-system.svc"
	return config
}

var _ = Describe("The gateway's own endpoint", func() {
	It("accepts a client certificate of the hub, and kubectl", func(ctx SpecContext) {
		config := endpointConfig(hubConfig(editor, team))
		must(ctx, config, fmt.Sprintf(settings, "direct", "red"), "apply", "-f", "-")
		Expect(must(ctx, config, "", "-n", namespace, "get", "configmap", "direct", "-o", "jsonpath={.data.colour}")).To(Equal("red"))
		Expect(must(ctx, config, "", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")).To(Equal(editor))
		must(ctx, config, "", "-n", namespace, "delete", "configmap", "direct")
	})

	It("accepts a token of the hub", func(ctx SpecContext) {
		token, err := tokenOf(ctx, hub, namespace, "deployer")
		Expect(err).NotTo(HaveOccurred())
		config := rest.AnonymousClientConfig(endpointConfig(hubConfig(editor)))
		config.BearerToken = token
		Expect(must(ctx, config, "", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")).
			To(Equal("hub:system:serviceaccount:" + namespace + ":deployer"))
	})

	It("rejects a token of the member, and users without the right", func(ctx SpecContext) {
		token, err := tokenOf(ctx, member, "default", "default")
		Expect(err).NotTo(HaveOccurred())
		config := rest.AnonymousClientConfig(endpointConfig(hubConfig(editor)))
		config.BearerToken = token
		_, err = clientsetFor(config).Discovery().ServerVersion()
		Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
		_, err = clientsetFor(endpointConfig(hubConfig("stranger"))).Discovery().ServerVersion()
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(clientsetFor(endpointConfig(hubConfig(viewer, team))).CoreV1().ConfigMaps(namespace).
			Delete(ctx, "any", metav1.DeleteOptions{})).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	})
})

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var _ = Describe("A failed request", func() {
	It("is Forbidden on the hub before the response reveals which members exist", func(ctx SpecContext) {
		for _, name := range []string{memberName, "nobody"} {
			_, err := once(ctx, hubConfig("stranger"), proxyPrefix+name+"/proxy/api")
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		}
		Expect(clientsetFor(configFor(memberName, viewer, team)).CoreV1().ConfigMaps(namespace).
			Delete(ctx, "any", metav1.DeleteOptions{})).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	})

	It("is NotFound for a member that does not exist", func(ctx SpecContext) {
		_, stderr, err := kubectl(ctx, hubConfig(editor), "", "get", "--raw", proxyPrefix+"nobody/proxy/api")
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(ContainSubstring(`clustergateways.cluster.core.oam.dev "nobody" not found`))
	})

	It("shows the cause in kubectl's last line, and kubectl does not retry when the member is not expected to reconnect", func(ctx SpecContext) {
		const sentence = `is not connected: its agent has no tunnel to this hub`
		config := configFor(lostName, editor)
		for _, arguments := range [][]string{
			{"get", "namespaces"}, {"version"}, {"get", "--raw", "/api/v1/namespaces"}, {"apply", "-f", "-"},
		} {
			_, stderr, err := kubectl(ctx, config, fmt.Sprintf(settings, "a", "red"), arguments...)
			Expect(err).To(HaveOccurred())
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			Expect(lines[len(lines)-1]).To(ContainSubstring(sentence), "kubectl %v", arguments)
		}
		var answers atomic.Int64
		counting := rest.CopyConfig(config)
		counting.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				answers.Add(1)
				return next.RoundTrip(r)
			})
		})
		client := clientsetFor(counting)
		_, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		Expect(err).To(And(Satisfy(apierrors.IsServiceUnavailable), MatchError(ContainSubstring(sentence))))
		_, err = client.Discovery().ServerGroups()
		Expect(err).To(MatchError(ContainSubstring(sentence)))
		Expect(answers.Load()).To(BeEquivalentTo(2), "client-go sends each request once")
	})

	It("is ServiceUnavailable at once while the member is disconnected, and succeeds once its agent reconnects", func(ctx SpecContext) {
		config := hubConfig(editor)
		_, err := once(ctx, config, proxyPrefix+awayName+"/proxy/api")
		Expect(apierrors.IsServiceUnavailable(err)).To(BeTrue(), "%v", err)

		agent.stop()
		DeferCleanup(func() {
			if !served.registry.Connected(memberName) {
				agent = connectAgent(memberName)
				awaitTunnel(memberName)
			}
		})
		Eventually(served.registry.Connected).WithArguments(memberName).Should(BeFalse())
		_, err = once(ctx, config, proxyPrefix+memberName+"/proxy/api")
		Expect(apierrors.IsServiceUnavailable(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring("not connected"))

		agent = connectAgent(memberName)
		awaitTunnel(memberName)
		Expect(must(ctx, config, "", "get", "--raw", proxyPrefix+memberName+"/proxy/healthz")).To(Equal("ok"))
	})

	It("is BadRequest for an ambiguous path", func() {
		code, _ := upgraded(editor, proxyPrefix+memberName+"/proxy/api/v1/namespaces/shop/../../nodes")
		Expect(code).To(Equal(http.StatusBadRequest))
	})
})

var _ = Describe("A tunnel", func() {
	It("is rejected for the agent of another member", func(ctx SpecContext) {
		_, err := tunnelDialer(memberName, awayName).Dial(ctx)
		var refused *tunnel.HubError
		Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
		Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
	})

	It("is rejected for a user with create on tunnels who is no member's agent", func(ctx SpecContext) {
		// The hub authorizes every request of system:masters.
		err := clientsetFor(hub.Config()).Discovery().RESTClient().Post().
			RequestURI("/apis/tunnel.fleetgate.io/v1alpha1/tunnels/" + memberName + "/proxy").Do(ctx).Error()
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring("is not the agent of this member"))
	})

	It("is reported as connected", func(ctx SpecContext) {
		got, err := once(ctx, hub.Config(), "/apis/tunnel.fleetgate.io/v1alpha1/tunnels/"+memberName)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(got)).To(ContainSubstring(`"connected":true`))
	})
})
