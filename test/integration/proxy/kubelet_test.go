// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// kubelet stands in for that of a node: what is asked of a pod happens on this
// machine, so that bytes really flow. The member's API server speaks to it as to
// any: SPDY, into which it translates WebSocket.
type kubelet struct {
	*httptest.Server
	// lines are what the pod's log goes on with.
	lines chan string
}

// startNode registers a node with such a kubelet, and a pod on it.
func startNode(ctx context.Context, pod string) *kubelet {
	GinkgoHelper()
	k := &kubelet{lines: make(chan string, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.logs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.exec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", k.attach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.portForward)
	k.Server = httptest.NewTLSServer(mux)
	DeferCleanup(func() {
		k.CloseClientConnections()
		k.Close()
	})
	host, port, err := net.SplitHostPort(k.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.ParseInt(port, 10, 32)
	Expect(err).NotTo(HaveOccurred())

	node := &corev1.Node{ObjectMeta: named("node-of-" + pod)}
	create(ctx, memberClient, node)
	DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, node)).To(Succeed()) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	Expect(memberClient.Status().Update(ctx, node)).To(Succeed())

	running := &corev1.Pod{ObjectMeta: in(namespace, pod), Spec: corev1.PodSpec{
		NodeName: node.Name, Containers: []corev1.Container{{Name: "main", Image: "none", Stdin: true}},
	}}
	// The account of the pod is made by the member's controllers.
	Eventually(func() error { return memberClient.Create(ctx, running) }).Should(Succeed())
	running.Status.Phase = corev1.PodRunning
	running.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	Expect(memberClient.Status().Update(ctx, running)).To(Succeed())
	return k
}

// logs sends lines as they come, until nobody reads or wants more.
func (k *kubelet) logs(w http.ResponseWriter, r *http.Request) {
	controller := http.NewResponseController(w)
	_, _ = fmt.Fprintln(w, "the first line")
	if r.URL.Query().Get("follow") == "" {
		return
	}
	for controller.Flush() == nil {
		select {
		case <-r.Context().Done():
			return
		case line := <-k.lines:
			_, _ = fmt.Fprintln(w, line)
		}
	}
}

// exec runs the command on this machine.
func (k *kubelet) exec(w http.ResponseWriter, r *http.Request) {
	defer GinkgoRecover()
	query := r.URL.Query()
	streams, done := remoteStreams(w, r)
	defer done()
	command := exec.CommandContext(r.Context(), query["command"][0], query["command"][1:]...)
	if streams["stdin"] != nil {
		stdin, err := command.StdinPipe()
		Expect(err).NotTo(HaveOccurred())
		go func() {
			_, _ = io.Copy(stdin, streams["stdin"])
			_ = stdin.Close()
		}()
	}
	command.Stdout, command.Stderr = writerOf(streams["stdout"]), writerOf(streams["stderr"])
	answerExit(streams["error"], command.Run())
}

// attach echoes.
func (k *kubelet) attach(w http.ResponseWriter, r *http.Request) {
	streams, done := remoteStreams(w, r)
	defer done()
	_, _ = io.Copy(writerOf(streams["stdout"]), streams["stdin"])
	answerExit(streams["error"], nil)
}

func writerOf(stream httpstream.Stream) io.Writer {
	if stream == nil {
		return io.Discard
	}
	return stream
}

// answerExit tells how a command ended, as version 4 of the protocol has it.
func answerExit(to io.Writer, err error) {
	status := metav1.Status{Status: metav1.StatusSuccess}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: err.Error(), Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(exit.ExitCode())}},
		}}
	}
	_ = json.NewEncoder(to).Encode(status)
}

// remoteStreams switches to SPDY and returns the streams that the query announces,
// by their type.
func remoteStreams(w http.ResponseWriter, r *http.Request) (streams map[string]httpstream.Stream, done func()) {
	GinkgoHelper()
	_, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"})
	Expect(err).NotTo(HaveOccurred())
	come := make(chan httpstream.Stream, 5)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		come <- stream
		return nil
	})
	Expect(conn).NotTo(BeNil())
	wanted := 1
	for _, kind := range []string{"input", "output", "error", "tty"} {
		if on := r.URL.Query().Get(kind); on == "1" || on == "true" {
			wanted++
		}
	}
	streams = map[string]httpstream.Stream{}
	for len(streams) < wanted {
		select {
		case stream := <-come:
			streams[stream.Headers().Get("streamType")] = stream
		case <-time.After(30 * time.Second):
			Fail(fmt.Sprintf("%d of %d streams have come", len(streams), wanted))
		}
	}
	return streams, func() {
		for _, stream := range streams {
			_ = stream.Close()
		}
		_ = conn.Close()
	}
}

// portForward connects pairs of streams to ports of this machine.
func (k *kubelet) portForward(w http.ResponseWriter, r *http.Request) {
	defer GinkgoRecover()
	_, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"})
	Expect(err).NotTo(HaveOccurred())
	var forwards sync.WaitGroup
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
		if stream.Headers().Get("streamType") == "data" {
			forwards.Go(func() {
				<-replied
				forwardPort(stream, stream.Headers().Get("port"))
			})
		}
		return nil
	})
	Expect(conn).NotTo(BeNil())
	<-conn.CloseChan()
	forwards.Wait()
}

func forwardPort(stream httpstream.Stream, port string) {
	defer func() { _ = stream.Reset() }()
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(stream, conn)
}
