// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server is one kubelet.
type Server struct {
	*httptest.Server
	// Lines are sent to followed logs.
	Lines chan string
}

// Start listens on loopback. Close it.
func Start() *Server {
	s := &Server{Lines: make(chan string, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", runCommand)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", echo)
	mux.HandleFunc("/portForward/{namespace}/{pod}", forwardPorts)
	s.Server = httptest.NewTLSServer(mux)
	return s
}

// Close also ends requests in flight.
func (s *Server) Close() {
	s.CloseClientConnections()
	s.Server.Close()
}

// Node makes the node that this kubelet is of.
func (s *Server) Node(ctx context.Context, c client.Client, name string) (*corev1.Node, error) {
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's address: %w", err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's port: %w", err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Create(ctx, node); err != nil {
		return nil, err
	}
	made := node.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	// A patch: others write the status of a new node too.
	return node, c.Status().Patch(ctx, node, client.MergeFrom(made))
}

// Pod makes a pod that runs on a node as far as the API server knows. It fails
// while the namespace has no account for it.
func Pod(ctx context.Context, c client.Client, node, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none", Stdin: true}}},
	}
	if err := c.Create(ctx, pod); err != nil {
		return nil, err
	}
	made := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	return pod, c.Status().Patch(ctx, pod, client.MergeFrom(made))
}

// FirstLine begins every log.
const FirstLine = "the first line"

// logs sends lines as they come, until nobody reads or wants more. A log of limited
// bytes has as many.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	if limit, err := strconv.ParseInt(r.URL.Query().Get("limitBytes"), 10, 64); err == nil {
		_, _ = io.CopyN(w, endless{}, limit)
		return
	}
	controller := http.NewResponseController(w)
	say := func(line string) {
		if r.URL.Query().Get("timestamps") == "true" {
			line = time.Now().UTC().Format(time.RFC3339Nano) + " " + line
		}
		_, _ = fmt.Fprintln(w, line)
	}
	say(FirstLine)
	if r.URL.Query().Get("follow") == "" {
		return
	}
	for controller.Flush() == nil {
		select {
		case <-r.Context().Done():
			return
		case line := <-s.Lines:
			say(line)
		}
	}
}

// endless is a log that does not end by itself.
type endless struct{}

// Read fills p.
func (endless) Read(p []byte) (int, error) {
	const line = "one line of a log after the other, as long as anybody reads them\n"
	for n := 0; n < len(p); {
		n += copy(p[n:], line)
	}
	return len(p), nil
}

// runCommand is exec: the command runs on this machine.
func runCommand(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	streams, done := remoteStreams(w, r)
	if streams == nil {
		return
	}
	defer done()
	command := exec.CommandContext(r.Context(), query["command"][0], query["command"][1:]...)
	if streams["stdin"] != nil {
		stdin, err := command.StdinPipe()
		if err != nil {
			answerExit(streams["error"], err)
			return
		}
		go func() {
			_, _ = io.Copy(stdin, streams["stdin"])
			_ = stdin.Close()
		}()
	}
	command.Stdout, command.Stderr = writerOf(streams["stdout"]), writerOf(streams["stderr"])
	answerExit(streams["error"], command.Run())
}

// echo is attach.
func echo(w http.ResponseWriter, r *http.Request) {
	streams, done := remoteStreams(w, r)
	if streams == nil {
		return
	}
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
	switch {
	case errors.As(err, &exit):
		status = metav1.Status{Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: err.Error(), Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(exit.ExitCode())}},
		}}
	case err != nil:
		status = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	}
	_ = json.NewEncoder(to).Encode(status)
}

// streamsTimeout bounds how long a caller may take to open what it announced.
const streamsTimeout = 30 * time.Second

// remoteStreams switches to SPDY and returns the streams that the query announces,
// by their type, or nil if they do not come.
func remoteStreams(w http.ResponseWriter, r *http.Request) (streams map[string]httpstream.Stream, done func()) {
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
		return nil, nil // It has answered.
	}
	come := make(chan httpstream.Stream, 5)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		come <- stream
		return nil
	})
	if conn == nil {
		return nil, nil
	}
	wanted := 1
	for _, kind := range []string{"input", "output", "error", "tty"} {
		if on := r.URL.Query().Get(kind); on == "1" || on == "true" {
			wanted++
		}
	}
	late := time.After(streamsTimeout)
	streams = map[string]httpstream.Stream{}
	for len(streams) < wanted {
		select {
		case stream := <-come:
			streams[stream.Headers().Get("streamType")] = stream
		case <-late:
			_ = conn.Close()
			return nil, nil
		}
	}
	return streams, func() {
		for _, stream := range streams {
			_ = stream.Close()
		}
		_ = conn.Close()
	}
}

// forwardPorts connects pairs of streams to ports of this machine.
func forwardPorts(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return // It has answered.
	}
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
	if conn == nil {
		return
	}
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
		if half, ok := conn.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(stream, conn)
}
