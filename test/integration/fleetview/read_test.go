// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/paths"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// lines returns the words of each line of a table.
func lines(table string) (all [][]string) {
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		all = append(all, strings.Fields(line))
	}
	return all
}

// columns returns the first words of each line.
func columns(n int, table string) (all []string) {
	for _, words := range lines(table) {
		all = append(all, strings.Join(words[:min(n, len(words))], " "))
	}
	return all
}

var _ = Describe("kubectl with a kubeconfig of the fleet", func() {
	var jane user
	BeforeEach(func(ctx SpecContext) { jane = someone(ctx, "jane", team) })

	It("lists objects of all members, with the member in a column", func(ctx SpecContext) {
		Expect(columns(3, jane.gets(ctx, "get", "pods", "-A", "-l", "app=web"))).
			To(Equal([]string{"NAMESPACE CLUSTER NAME", "shop member-1 web", "shop member-2 web"}))
		Expect(columns(2, jane.gets(ctx, "-n", namespace, "get", "pods"))).
			To(Equal([]string{"CLUSTER NAME", "member-1 web", "member-2 api", "member-2 web"}))
		Expect(jane.gets(ctx, "-n", namespace, "get", "pods", "-o", "wide")).To(MatchRegexp(`CLUSTER +NAME.* NODE `))
		Expect(columns(2, jane.gets(ctx, "-n", namespace, "get", "pods", "--chunk-size=1"))).To(HaveLen(4))
		Expect(columns(2, jane.gets(ctx, "-n", namespace, "get", "pods", "--sort-by=.metadata.name"))).
			To(HaveExactElements("CLUSTER NAME", "member-2 api", HaveSuffix(" web"), HaveSuffix(" web")))
		Expect(columns(2, jane.gets(ctx, "-n", namespace, "get", "pods", "--field-selector=metadata.name=api"))).
			To(Equal([]string{"CLUSTER NAME", "member-2 api"}))
	})

	It("prints objects in every other output format, each with its member in a label", func(ctx SpecContext) {
		Expect(jane.gets(ctx, "-n", namespace, "get", "pods", "-o", "name")).To(Equal("pod/web\npod/api\npod/web\n"))
		var list corev1.PodList
		Expect(json.Unmarshal([]byte(jane.gets(ctx, "-n", namespace, "get", "pods", "-o", "json")), &list)).To(Succeed())
		Expect(list.Items).To(HaveExactElements(
			HaveField("Labels", And(HaveKeyWithValue(viewv1alpha1.LabelMember, first), HaveKeyWithValue("app", "web"))),
			HaveField("Labels", HaveKeyWithValue(viewv1alpha1.LabelMember, second)),
			HaveField("Spec.Containers", ConsistOf(HaveField("Image", "web")))))
		Expect(jane.gets(ctx, "-n", namespace, "get", "pods", "-o", "yaml")).To(ContainSubstring(viewv1alpha1.LabelMember + ": " + second))
		Expect(jane.gets(ctx, "-n", namespace, "get", "pods", "-o", `custom-columns=M:.metadata.labels.view\.fleetgate\.io/member,N:.metadata.name`)).
			To(MatchRegexp(`^M +N\nmember-1 +web\nmember-2 +api\nmember-2 +web\n$`))
	})

	It("discovers and explains the members' kinds", func(ctx SpecContext) {
		Expect(jane.gets(ctx, "api-resources")).To(MatchRegexp(`(?m)^deployments +deploy +apps/v1 +true +Deployment$`))
		Expect(jane.gets(ctx, "explain", "deployment.spec.replicas")).To(ContainSubstring("FIELD: replicas <integer>"))
		told, _, _ := jane.tries(ctx, "version") // An old kubectl also warns about its age.
		Expect(told).To(ContainSubstring("Server Version: v1."))
		Expect(jane.gets(ctx, "get", "--raw", "/apis/apps")).To(ContainSubstring(`"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}`))
		Expect(jane.gets(ctx, "get", "--raw", "/api/v1")).To(ContainSubstring(`"kind":"APIResourceList"`))
		_, stderr, err := jane.tries(ctx, "get", "deployments.v1.apps", "-A")
		Expect(err).NotTo(HaveOccurred())
		Expect(stderr).To(Equal("No resources found\n"))
		Expect(jane.fails(ctx, "get", "flowers")).To(ContainSubstring(`the server doesn't have a resource type "flowers"`))
	})

	It("shows events of all members", func(ctx SpecContext) {
		expect.Created(ctx, on[first], &corev1.Event{
			ObjectMeta: build.In(namespace, "broken"), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: twin},
			Reason: "Broken", Message: "it broke on the first", Type: corev1.EventTypeWarning,
		})
		Expect(jane.gets(ctx, "-n", namespace, "events", "--types=Warning")).To(ContainSubstring("it broke on the first"))
		Expect(jane.gets(ctx, "-n", namespace, "get", "events", "--field-selector=reason=Broken")).To(MatchRegexp(`(?m)^member-1 .*Broken +pod/web`))
	})

	It("answers self-subject reviews", func(ctx SpecContext) {
		Expect(jane.gets(ctx, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")).To(Equal("jane"))
		Expect(jane.gets(ctx, "auth", "can-i", "list", "pods", "-n", namespace)).To(Equal("yes\n"))
		Expect(jane.gets(ctx, "auth", "can-i", "--list", "-n", namespace)).To(ContainSubstring("pods/log"))
		stdout, _, err := jane.tries(ctx, "auth", "can-i", "delete", "pods", "-n", namespace)
		Expect(err).To(HaveOccurred())
		Expect(stdout).To(HavePrefix("no"))
	})

	It("cannot write, and the error says how to reach a member", func(ctx SpecContext) {
		Expect(jane.fails(ctx, "-n", namespace, "delete", "pod", pod, "--wait=false")).To(ContainSubstring("gateway kubeconfig MEMBER"))
		Expect(jane.fails(ctx, "create", "namespace", "new")).To(ContainSubstring("gateway kubeconfig MEMBER"))
		Expect(jane.fails(ctx, "-n", namespace, "exec", pod, "--", "true")).To(ContainSubstring("gateway kubeconfig MEMBER"))
		Expect(on[second].Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod}, &corev1.Pod{})).To(Succeed())
	})
})

var _ = Describe("A request for one object", func() {
	It("returns the member's object, with logs and description", func(ctx SpecContext) {
		jane := someone(ctx, "jane", team)
		Expect(jane.gets(ctx, "-n", namespace, "get", "pod", pod, "-o", `jsonpath={.metadata.labels.view\.fleetgate\.io/member}`)).To(Equal(second))
		Expect(jane.gets(ctx, "-n", namespace, "describe", "pod", pod)).To(And(ContainSubstring("Name:             api"), ContainSubstring(viewv1alpha1.LabelMember+"="+second)))
		Expect(jane.gets(ctx, "-n", namespace, "logs", pod, "--tail=1")).NotTo(BeEmpty())
		Expect(jane.fails(ctx, "-n", namespace, "get", "pod", "none")).To(Equal("Error from server (NotFound): pods \"none\" not found\n"))
	})

	It("returns table rows, or an error that names the members, when several have it", func(ctx SpecContext) {
		jane := someone(ctx, "jane", team)
		Expect(columns(2, jane.gets(ctx, "-n", namespace, "get", "pod", twin))).To(Equal([]string{"CLUSTER NAME", "member-1 web", "member-2 web"}))
		Expect(jane.fails(ctx, "-n", namespace, "get", "pod", twin, "-o", "yaml")).To(ContainSubstring(`pods "web" is on 2 members (member-1, member-2)`))
		Expect(jane.fails(ctx, "-n", namespace, "logs", twin)).To(ContainSubstring("is on 2 members"))
	})

	It("returns one object by its qualified name in a view that qualifies names", func(ctx SpecContext) {
		expect.Created(ctx, hubClient, &viewv1alpha1.FleetView{ObjectMeta: build.Named("qualified"), Spec: viewv1alpha1.FleetViewSpec{Names: viewv1alpha1.NamesQualified}})
		jane := someone(ctx, "jane", team, "qualified")
		Eventually(func() (string, error) {
			stdout, _, err := jane.tries(ctx, "-n", namespace, "get", "pods", "-o", "name")
			return stdout, err
		}).Should(Equal("pod/member-1.web\npod/member-2.api\npod/member-2.web\n"))
		Expect(columns(2, jane.gets(ctx, "-n", namespace, "get", "pod", "member-1.web"))).To(Equal([]string{"CLUSTER NAME", "member-1 member-1.web"}))
		Expect(jane.gets(ctx, "-n", namespace, "logs", "member-2.api", "--tail=1")).NotTo(BeEmpty())
		expect.Created(ctx, on[first], &corev1.Event{
			ObjectMeta: build.In(namespace, "seen"), Reason: "Seen", Message: "it was seen", Type: corev1.EventTypeNormal,
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: twin},
		})
		Expect(jane.gets(ctx, "-n", namespace, "get", "events", "--field-selector=involvedObject.name=member-1.web,reason=Seen")).To(ContainSubstring("it was seen"))
		Expect(jane.fails(ctx, "-n", namespace, "get", "pod", twin)).To(ContainSubstring("<member>.<name>"))
		Expect(columns(2, jane.gets(ctx, "-n", second+"."+namespace, "get", "pods"))).To(Equal([]string{"CLUSTER NAME", "member-2 member-2.api", "member-2 member-2.web"}))
		Expect(jane.gets(ctx, "-n", second+"."+namespace, "logs", "member-2.api", "--tail=1")).NotTo(BeEmpty())
		// kubectl describe node sends this request.
		for _, node := range []string{second + ".node-of-" + pod, "node-of-" + pod} {
			Expect(jane.gets(ctx, "get", "pods", "-A", "-o", "name", "--field-selector=spec.nodeName="+node)).To(Equal("pod/member-2.api\n"))
		}
		described := jane.gets(ctx, "-n", namespace, "describe", "pod", "member-1.web")
		Expect(described).To(And(MatchRegexp(`(?m)^Name: +member-1\.web$`), MatchRegexp(`(?s)Events:.*Successfully assigned shop/web to member-1`)))
	})

	It("follows logs on the member that has the object", func(ctx SpecContext) {
		jane := someone(ctx, "jane", team)
		program, err := env.Kubectl()
		Expect(err).NotTo(HaveOccurred())
		following, stop := context.WithCancel(ctx)
		command := exec.CommandContext(following, program, "--kubeconfig="+jane.fleet, "-n", namespace, "logs", "-f", pod, "--tail=1")
		command.Env = append(command.Environ(), "KUBECONFIG=")
		out, err := command.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(command.Start()).To(Succeed())
		DeferCleanup(func() {
			stop()
			_ = command.Wait()
		})
		lines := bufio.NewScanner(out)
		Expect(lines.Scan()).To(BeTrue())
		Expect(lines.Text()).NotTo(BeEmpty())
	})
})

var _ = Describe("A view", func() {
	It("contains the members that its selector matches", func(ctx SpecContext) {
		none := &viewv1alpha1.FleetView{ObjectMeta: build.Named("none"), Spec: viewv1alpha1.FleetViewSpec{
			MemberSelector: metav1.SetAsLabelSelector(map[string]string{"no": "such"}),
		}}
		expect.Created(ctx, hubClient, none)
		DeferCleanup(func(ctx SpecContext) { Expect(hubClient.Delete(ctx, none)).To(Succeed()) })
		Eventually(func() string {
			_, stderr, _ := someone(ctx, "jane", team, "none").tries(ctx, "get", "pods", "-A")
			return stderr
		}).Should(ContainSubstring("it shows no member that you can reach"))
		Expect(someone(ctx, "jane", team, "unknown").fails(ctx, "get", "--raw", "/api/v1/pods")).To(ContainSubstring(`fleetviews.view.fleetgate.io "unknown" not found`))
		Expect(columns(2, someone(ctx, "jane", team, "labels:!no").gets(ctx, "-n", namespace, "get", "pods"))).To(HaveLen(4))
		err := hubClient.Create(ctx, &viewv1alpha1.FleetView{ObjectMeta: build.Named("all")})
		Expect(err).To(MatchError(ContainSubstring("the view all is there without an object")))
	})

	It("shows each caller the objects that the caller can read on each reachable member", func(ctx SpecContext) {
		visitor := someone(ctx, "victor", "visitors")
		Expect(columns(2, visitor.gets(ctx, "-n", namespace, "get", "pods"))).To(Equal([]string{"CLUSTER NAME", "member-2 api", "member-2 web"}))
		Expect(visitor.fails(ctx, "get", "pods", "-A")).To(And(ContainSubstring("Forbidden"), ContainSubstring("1 of 1 members refuse")))
		Expect(someone(ctx, "victor", "visitors", "labels:!no").fails(ctx, "get", "pods")).To(ContainSubstring("Forbidden"), "it is another view")
		Expect(visitor.fails(ctx, "-n", namespace, "delete", "pod", pod)).To(ContainSubstring("Forbidden"))
		Expect(someone(ctx, "stranger", "nobody").fails(ctx, "get", "pods")).To(ContainSubstring("Forbidden"))
	})

	It("names members that reject the request and members that do not answer", func(ctx SpecContext) {
		jane := someone(ctx, "jane", team)
		right := &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(team)}
		Expect(on[first].Get(ctx, client.ObjectKeyFromObject(right), right)).To(Succeed())
		Expect(on[first].Delete(ctx, right)).To(Succeed())
		Eventually(func() string {
			_, stderr, _ := jane.tries(ctx, "-n", namespace, "get", "pods")
			return stderr
		}).Should(Equal("Warning: 1 of 2 members do not let you list pods in namespace shop: member-1\n"))
		right.ResourceVersion, right.UID = "", ""
		expect.Created(ctx, on[first], right)
		Eventually(func() string {
			_, stderr, _ := jane.tries(ctx, "-n", namespace, "get", "pods")
			return stderr
		}).Should(BeEmpty())

		Expect(running.Members[1].Cluster.Freeze()).To(Succeed())
		DeferCleanup(func() { Expect(running.Members[1].Cluster.Thaw()).To(Succeed()) })
		stdout, stderr, err := jane.tries(ctx, "-n", namespace, "get", "pods")
		Expect(err).NotTo(HaveOccurred())
		Expect(columns(2, stdout)).To(Equal([]string{"CLUSTER NAME", "member-1 web"}))
		Expect(stderr).To(Equal("Warning: 1 of 2 members did not answer within 2s: member-2\n"))
		Expect(jane.fails(ctx, "-n", namespace, "get", "pod", "none")).To(ContainSubstring("1 of 2 members did not answer within 2s"))
	})

	It("is served at the gateway's own endpoint too", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", someone(ctx, "jane", team).hub)
		Expect(err).NotTo(HaveOccurred())
		config.Host = running.GatewayURL() + paths.ViewEndpoint + "all"
		config.CAData, config.Insecure = nil, true
		clientset, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		list := func(ctx context.Context) (int, error) {
			pods, err := clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return 0, err
			}
			return len(pods.Items), nil
		}
		Eventually(list).WithContext(ctx).Should(Equal(3))
	})
})
